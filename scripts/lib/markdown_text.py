"""Reads the repository's Markdown as a viewer does: prose and fenced blocks, anchors of headings, links.

Imported by scripts/check-documents and by what makes the site (scripts/lib/site). Open it when one of them takes a
line for what it is not.
"""
import re

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
HEADING = re.compile(r"(#{1,6}) +(.*?) *#*$")
CODE = re.compile(r"(`+).+?\1")
LINK = re.compile(r"!?\[(?:[^\]\n]|\n(?!\n))*\]\(([^)\s]*)\)")  # its text may go on in the next line


def lines_of(text):
    """Yields the number and text of each line, and whether it is prose: it stands in no fenced block."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = FENCE.match(line)
        if fence is None and mark:
            fence = mark[1]
            yield number, line, False
        elif fence is not None:
            if mark and mark[1].startswith(fence) and line.strip() == mark[1]:
                fence = None
            yield number, line, False
        else:
            yield number, line, True


def prose_of(text):
    """Yields the number and text of each line that stands in no fenced block."""
    for number, line, is_prose in lines_of(text):
        if is_prose:
            yield number, line


class Anchors:
    """The anchors that a reader's Markdown viewer makes of the headings of one document, in their order."""

    def __init__(self):
        self.seen = {}

    def next(self, heading):
        """Returns the anchor of the next heading, of which this is the text."""
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        count = self.seen.get(anchor, 0)
        self.seen[anchor] = count + 1
        return f"{anchor}-{count}" if count else anchor


def anchors_of(text):
    """Returns the anchors of all headings."""
    anchors = Anchors()
    headings = (HEADING.fullmatch(line) for _, line in prose_of(text))
    return {anchors.next(heading[2]) for heading in headings if heading}


def links_of(text):
    """Yields the line number and target of each relative link."""
    prose = "\n".join(CODE.sub("", line) if is_prose else "" for _, line, is_prose in lines_of(text))
    for link in LINK.finditer(prose):
        if not re.match(r"[a-z]+:", link[1]):
            yield prose.count("\n", 0, link.end()) + 1, link[1]
