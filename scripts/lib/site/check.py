"""Checks the pages as they were made: each link leads to a page and to an anchor there, and none asks another machine.

Open it when a page is broken and the build did not say so.
"""
import html.parser
import os
import re
import urllib.parse

# What a browser fetches by itself, and not when somebody follows a link.
FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src",
           "object": "data", "embed": "src", "link": "href", "image": "href", "use": "href"}


class Page(html.parser.HTMLParser):
    """The anchors of a page, its links, and what it fetches."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.fetched, self.open = set(), [], [], []
        self.twice = set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        if "id" in named:
            (self.twice if named["id"] in self.anchors else self.anchors).add(named["id"])
        if tag == "a" and named.get("href"):
            self.links.append(named["href"])
        if tag in FETCHED and named.get(FETCHED[tag]) and named.get("rel") not in ("canonical", "next", "prev"):
            self.fetched.append(named[FETCHED[tag]])


def faults(folder, expected):
    """Returns a message for each fault of the pages in a folder, and for each expected one that is not there."""
    found = []
    names = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    parsed = {name: Page((folder / name).read_text(encoding="utf-8"))
              for name in sorted(names) if name.endswith(".html")}
    found += [f"{name}: the page is not there" for name in expected if name not in parsed]
    reached = {"index.html"}
    for name, page in parsed.items():
        if name == "404.html":
            continue  # it is shown at any address
        found += [f"{name}: two elements are #{anchor}" for anchor in sorted(page.twice)]
        for link in page.links + page.fetched:
            address = urllib.parse.urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(name), urllib.parse.unquote(address.path))) \
                if address.path else name
            if target not in names:
                found.append(f"{name}: {link} leads nowhere")
            elif address.fragment and urllib.parse.unquote(address.fragment) not in parsed[target].anchors:
                found.append(f"{name}: {link}: no such anchor")
            reached.add(target)
        found += [f"{name}: asks another machine for {link}" for link in page.fetched if re.match(r"(?:\w+:)?//", link)]
    found += [f"{name}: no page leads to it" for name in parsed if name not in reached and name != "404.html"]
    for name in names:
        if name.endswith(".css"):
            text = (folder / name).read_text(encoding="utf-8")
            found += [f"{name}: asks another machine for {link}"
                      for link in re.findall(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')]+)", text)]
    return found
