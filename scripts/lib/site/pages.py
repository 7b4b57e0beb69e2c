"""Turns the repository's documents into pages of the site: their place, their anchors, and where their links lead.

Open it when a page lies at the wrong place, or when a link of a document should lead elsewhere on the site. The
documents stay as they are, with links that work in the repository.
"""
import html
import os
import re

import navigation
from markdown_text import CODE, HEADING, LINK, Anchors, lines_of

# Where a document goes that would not have a good place of its own.
PLACES = {
    "README.md": "index.md",
    "LICENSE": "project/licence.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "lib/include/sluice/README.md": "reference/which.md",
    "lib/src/README.md": "internals/heap.md",
    "lib/src/stats/README.md": "docs/statistics-json.md",
    "scenarios/README.md": "results/scenarios.md",
    "scenarios/results.md": "results/results.md",
    "scenarios/programs/README.md": "results/programs.md",
    "scenarios/micro/README.md": "results/parts.md",
    "tests/README.md": "internals/tests.md",
    "tests/preload/README.md": "docs/drop-in.md",
}
COMMENT = re.compile(r"\s*<!-- .* -->\s*")


def place_of(path):
    """Returns the page that a document or header of the repository becomes."""
    if path in PLACES:
        return PLACES[path]
    if path.startswith(navigation.HEADERS):
        return "reference/" + path[len(navigation.HEADERS):].replace(".", "_") + ".md"
    place = path
    for folder in ("lib/docs/decisions/", "lib/docs/internals/", "lib/docs/"):
        if path.startswith(folder):
            place = ("docs/" if folder == "lib/docs/" else folder[len("lib/docs/"):]) + path[len(folder):]
            break
    return re.sub(r"README\.md$", "index.md", place)


def way(page, target):
    """Returns the relative path from one page to another."""
    return os.path.relpath(target, os.path.dirname(page) or ".")


class Pages:
    """All documents that become pages, and the links between them."""

    def __init__(self, shown, files):
        self.shown = set(shown)
        folders = {os.path.dirname(path) for path in files}
        self.files = set(files) | folders | {"/".join(folder.split("/")[:n]) for folder in folders
                                             for n in range(1, folder.count("/") + 1)}

    def target_of(self, path, target):
        """Returns where a relative link of a document leads on the site; None for what the site does not show."""
        name, _, anchor = target.partition("#")
        if not name:
            return target
        found = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if found not in self.shown and found + "/README.md" in self.shown:
            found += "/README.md"
        if found in self.shown:
            return way(place_of(path), place_of(found)) + (f"#{anchor}" if anchor else "")
        if found not in self.files:
            raise SystemExit(f"scripts/site: error: {path}: {target} leads nowhere")
        return None

    def link(self, path, match):
        """Returns a link of a document as it stands on the site."""
        whole, target = match[0], match[1]
        if re.match(r"[a-z]+:", target):
            return whole
        leads_to = self.target_of(path, target)
        if leads_to is not None:
            return whole[:match.start(1) - match.start()] + leads_to + ")"
        # A file of the repository: named, and no link, for the site knows no address of the repository.
        text = whole[1:whole.rindex("](")]
        where = os.path.normpath(os.path.join(os.path.dirname(path), target))
        return f'<span class="in-repository" title="in the repository: {html.escape(where)}" markdown>{text}</span>'

    def linked(self, path, text):
        """Returns prose with its links. What stands in backquotes stays, and documents have no HTML."""
        hidden = []

        def hide(code):
            hidden.append(code[0])
            return f"\0{len(hidden) - 1}\0"

        def show(text):
            return re.sub("\0(\\d+)\0", lambda number: hidden[int(number[1])], text)

        return show(LINK.sub(lambda match: self.link(path, match), CODE.sub(hide, text).replace("<", "&lt;")))

    def page(self, path, text):
        """Returns a document as the text of its page."""
        anchors, parts = Anchors(), []

        def add(kind, line):
            if kind == "prose" and parts and parts[-1][0] == kind:
                parts[-1][1].append(line)
            else:
                parts.append((kind, [line]))

        for _, line, is_prose in lines_of(text):
            heading = HEADING.fullmatch(line) if is_prose else None
            if heading:
                add("prose", f"{heading[1]} {heading[2]} {{#{anchors.next(heading[2])}}}")
            elif is_prose and COMMENT.fullmatch(line):
                add("prose", "")
            elif is_prose and line.startswith("|"):  # where this Markdown is read, backquotes hide a bar
                add("prose", CODE.sub(lambda code: code[0].replace("\\|", "|"), line))
            else:
                add("prose" if is_prose and not line.startswith("    ") else "code", line)
        return "\n".join(self.linked(path, "\n".join(lines)) if kind == "prose" else "\n".join(lines)
                         for kind, lines in parts) + "\n"


def title_of(text, path):
    """Returns the first heading of a document."""
    heading = re.search(r"^# +(.*)$", text, re.M)
    if not heading:
        raise SystemExit(f"scripts/site: error: {path} has no heading")
    return heading[1].replace("`", "")


def licence_page(text):
    return ("# Licence\n\n" + text + "\nThese pages are shown with Zensical: "
            "[its licence](../assets/zensical-licence.txt), and [those of its parts](../assets/javascripts/LICENSE).\n")
