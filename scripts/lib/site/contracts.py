"""Turns a comment of a header into a part of a page: what it says, its example, and its contract word by word.

Open it when a word of the contracts (Effects, Requires, Returns, ...) should stand out and does not. The headers
are for readers of code first: their comments have no markup, so that names and contract words are found by how they
look.
"""
import html
import re

# A word of the contracts, as it begins a sentence, and what it is called on the page.
LABEL = re.compile(
    r"(?:(?<=^)|(?<=[.;:!?)…] )|(?<=\n))"
    r"(Effects|Requires|Returns|Complexity|Thread-safety|Errors|Invalidation|Validity|Interface|Memory(?: per element)?"
    r"|Memory resource|Checked(?: \([\w.]+\))?|When to use it|When not): ")
# Sentences that begin with one of these are a part of the contract of their own.
SENTENCES = [
    (re.compile(r"Throws\b"), "Throws"),
    (re.compile(r"(?:Thread-safe|Not async-signal-safe|Async-signal-safe)\b"), "Thread-safety"),
    (re.compile(r"errno is\b"), "Errors"),
    (re.compile(r"Open it (?=when|to|for)"), "Use it"),
]
SENTENCE = re.compile(r"(?<=[.!?…]) (?=[A-Z]|errno)")

ARGUMENTS = r"(?:<[\w:, &*]*>)?"
NAME = re.compile(
    r"(?<![\w/.-])(?:"
    rf"(?:\w+/)*\w+\.(?:hpp|h)\b"  # violation.hpp
    rf"|~?[A-Za-z_]\w*(?:::~?\w+)+{ARGUMENTS}(?:\(\))?[&*]?"  # std::bad_alloc
    rf"|[A-Za-z]\w*_\w*{ARGUMENTS}(?:\(\d*\)|=\d+)?[&*]?"  # try_acquire, and SLUICE_ARENA=0
    r"|(?:sizeof|alignof)\([\w ,*]+\)"
    r"|\w+\(\d*\)"  # size(), and write(2)
    r"|(?:EINVAL|ENOMEM|NULL|NDEBUG|errno|constexpr|noexcept)\b"
    r")")


def lines_of_comment(comment):
    """Returns the lines of a comment of C or C++ without its signs, indented as they are behind them."""
    if comment.lstrip().startswith("/*"):
        body = comment.strip()[2:-2]
        lines = [re.sub(r"^\s*\* ?", "", line) if number else line.strip()
                 for number, line in enumerate(body.splitlines())]
    else:
        lines = [re.sub(r"^\s*//+ ?", "", line) for line in comment.splitlines()]
    return [line.rstrip() for line in lines]


def blocks_of(lines):
    """Yields ("text", lines) and ("code", lines): what is indented is an example."""
    kind, block = None, []
    for line in lines + [""]:
        is_code = line.startswith("  ")
        if not line.strip():
            if kind == "code":
                block.append("")  # an example may go on behind it
            elif block:
                yield kind, block
                kind, block = None, []
            continue
        this = "code" if is_code else "text"
        if kind not in (None, this):
            yield kind, block
            block = []
        kind = this
        block.append(line[2:] if is_code else line.strip())
    if block:
        yield kind, block


def segments_of(text):
    """Returns pairs of a contract's word, or "" for plain text, and what it says, in their order."""
    pieces = LABEL.split(text)
    segments = [("", pieces[0])] + list(zip(pieces[1::2], pieces[2::2]))
    found = []
    for label, said in segments:
        current = [label, []]
        for sentence in SENTENCE.split(said.strip()):
            for pattern, name in SENTENCES:
                mark = pattern.match(sentence)
                if mark and name != current[0]:
                    found.append(current)
                    current = [name, []]
                    sentence = sentence[mark.end():].lstrip() if name in ("Use it", "Throws") else sentence
            current[1].append(sentence)
        found.append(current)
    return [(label, " ".join(said).strip()) for label, said in found if " ".join(said).strip()]


class Names:
    """The names that pages explain, so that a comment that says one leads to its page."""

    def __init__(self):
        self.where = {}

    def add(self, name, page, anchor):
        self.where.setdefault(name, (page, anchor))

    def link(self, name, page):
        """Returns the address of what explains a name, seen from a page; None if none does or the page itself."""
        bare = re.sub(r"^sluice(?:::|/)", "", re.sub(r"<.*|\(.*|=.*|[&*]$", "", name))
        found = self.where.get(bare)
        if found is None or found[0] == page:
            return None
        return f"{found[0].rsplit('/', 1)[1][:-3]}.html#{found[1]}"


def inline(text, names, page):
    """Returns a text as HTML, with names of the code set as code, and linked where a page explains them."""
    def code(name):
        link = names.link(name, page)
        shown = f"<code>{html.escape(name)}</code>"
        return f'<a href="{link}">{shown}</a>' if link else shown

    parts = re.split(r"`([^`]*)`", text)
    for index, part in enumerate(parts):
        if index % 2:
            parts[index] = code(part)
            continue
        done, at = [], 0
        for match in NAME.finditer(part):
            done += [html.escape(part[at:match.start()]), code(match[0])]
            at = match.end()
        parts[index] = "".join(done) + html.escape(part[at:])
    return "".join(parts)


def render(comment, names, page, language="cpp"):
    """Returns a comment as Markdown and HTML."""
    result, terms = [], []

    def close():
        if terms:
            rows = " ".join(f"<dt>{label}</dt> <dd>{said}</dd>" for label, said in terms)
            result.append(f'<dl class="contract">{rows}</dl>')
            terms.clear()

    for kind, block in blocks_of(lines_of_comment(comment)):
        if kind == "code":
            close()
            while block and not block[-1]:
                block.pop()
            result.append("```" + language + "\n" + "\n".join(block) + "\n```")
            continue
        # A contract's word begins a line or a sentence.
        for label, said in segments_of(" ".join(block)):
            shown = inline(said, names, page)
            if label:
                terms.append((label, shown[:1].upper() + shown[1:] if label != "Use it" else shown))
            else:
                close()
                result.append(f"<p>{shown}</p>")
    close()
    return "\n\n".join(result)
