"""Builds the site: writes the pages beside the repository's files, has them rendered, and checks what came of it.

scripts/site runs it, in a virtual environment with what requirements.txt names. Open it to change how the site is
put together. Nothing of the repository is moved: pages are written to build/site-pages, from documents and headers
as they are.
"""
import argparse
import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent))

import charts  # noqa: E402
import check  # noqa: E402
import navigation  # noqa: E402
import pages  # noqa: E402
from project_files import ROOT, project_files  # noqa: E402
from reference import Reference  # noqa: E402

RESULTS = ("scenarios/results.md",)
FEATURES = ["navigation.tabs", "navigation.prune", "navigation.top", "navigation.footer", "content.code.copy",
            "toc.follow"]
EXTENSIONS = [
    "attr_list", "md_in_html", "tables", {"toc": {"permalink": True, "toc_depth": 3}},
    {"pymdownx.highlight": {"use_pygments": True}}, "pymdownx.superfences", "pymdownx.inlinehilite",
]


def scheme(media, icon, following, **more):
    return {"media": media, "primary": "custom", "accent": "custom", **more,
            "toggle": {"icon": icon, "name": f"Switch to {following}"}}


# First as the system prefers, and as the reader chooses from then on.
PALETTE = [scheme("(prefers-color-scheme)", "lucide/sun-moon", "light"),
           scheme("(prefers-color-scheme: light)", "lucide/sun", "dark", scheme="default"),
           scheme("(prefers-color-scheme: dark)", "lucide/moon", "what the system prefers", scheme="slate")]


def configuration(menu, docs, site):
    """Returns the configuration of the generator. It is that of MkDocs, which other generators read too."""
    return {
        "site_name": "Sluice", "site_description": "A drop-in malloc for Linux: guides, reference and results",
        "docs_dir": str(docs), "site_dir": str(site), "use_directory_urls": False,
        "theme": {
            "name": "material", "variant": "modern", "font": False, "language": "en", "features": FEATURES,
            "icon": {"logo": "material/water"},
            "palette": PALETTE,
        },
        "plugins": ["search", "offline"], "extra_css": ["assets/site.css"],
        "markdown_extensions": EXTENSIONS, "nav": menu,
    }


class Site:
    """The pages, the menu, and the folders that they are made in."""

    def __init__(self, build):
        self.files = project_files()
        faults = list(navigation.faults(self.files))
        if faults:
            raise SystemExit("\n".join(["scripts/site: error: the menu is not complete", *faults]))
        self.docs, self.made, self.site = build / "site-pages", build / "site-made", build / "site"
        self.shown = [path for target in navigation.named(navigation.MENU)
                      for path in (navigation.folder_of(target, self.files) if target.endswith("*") else [target])]
        self.pages = pages.Pages(self.shown, self.files)
        self.reference = Reference(ROOT)
        self.reference.register()

    def text(self, path):
        return (ROOT / path).read_text(encoding="utf-8")

    def page(self, path):
        if path.endswith((".h", ".hpp")):
            return self.reference.page(path)
        if path == "LICENSE":
            return pages.licence_page(self.text(path))
        page = self.pages.page(path, self.text(path))
        return charts.with_charts(page) if path in RESULTS else page

    def menu(self, entries):
        """Returns the menu as the generator wants it."""
        found = []
        for entry in entries:
            title, target = entry if isinstance(entry, tuple) else (None, entry)
            if isinstance(target, list):
                found.append({title: self.menu(target)})
            elif target.endswith("*"):
                found += [{self.title(path): pages.place_of(path)} for path in navigation.folder_of(target, self.files)]
            else:
                found.append({title or self.title(target): pages.place_of(target)})
        return found

    def title(self, path):
        if path.endswith((".h", ".hpp")):
            return path.rsplit("/", 1)[1]
        return pages.title_of(self.text(path), path)

    def write(self):
        shutil.rmtree(self.docs, ignore_errors=True)
        for path in self.shown:
            place = self.docs / pages.place_of(path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(self.page(path), encoding="utf-8")
        (self.docs / "assets").mkdir()
        shutil.copy(HERE / "site.css", self.docs / "assets")
        shutil.copy(HERE / "file-worker.js", self.docs / "assets")
        licence = next(file for file in importlib.metadata.files("zensical") if file.name == "LICENSE.md"
                       and "dist-info" in str(file))
        shutil.copy(licence.locate(), self.docs / "assets" / "zensical-licence.txt")

    def render(self):
        """Has the pages rendered; what is said, by a warning too, is an error."""
        shutil.rmtree(self.made, ignore_errors=True)
        file = self.docs.parent / "site.yml"
        menu = self.menu(navigation.MENU)
        # YAML reads JSON.
        file.write_text(json.dumps(configuration(menu, self.docs.name, self.made.name), indent=1), encoding="utf-8")
        command = [os.path.join(sys.prefix, "bin", "zensical"), "build", "--clean", "--strict", "-f", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=file.parent, stdin=subprocess.DEVNULL)
        said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr).partition("Traceback (most")[0].rstrip()
        if done.returncode or "warning" in said.lower() or not (self.made / "index.html").is_file():
            raise SystemExit(f"scripts/site: error: the pages could not be rendered\n{said}")

    def keep_at_home(self):
        """The theme would have a script from elsewhere, for the search in files: ours is in its place."""
        for page in self.made.rglob("*.html"):
            text = page.read_text(encoding="utf-8")
            script = os.path.relpath(self.made / "assets" / "file-worker.js", page.parent)
            page.write_text(text.replace("https://unpkg.com/iframe-worker/shim", script), encoding="utf-8")

    def finish(self):
        """Checks what was made, and puts it in the place of the last site."""
        faults = check.faults(self.made, [pages.place_of(path)[:-3] + ".html" for path in self.shown])
        if faults:
            raise SystemExit("\n".join([*faults, f"scripts/site: error: {len(faults)} faults in the pages"]))
        shutil.rmtree(self.site, ignore_errors=True)
        self.made.rename(self.site)


def main():
    parser = argparse.ArgumentParser(prog="scripts/site")
    parser.add_argument("build", type=pathlib.Path, help="the folder to build in")
    site = Site(parser.parse_args().build.resolve())
    site.write()
    site.render()
    site.keep_at_home()
    site.finish()
    print(f"scripts/site: {len(site.shown)} pages: {site.site / 'index.html'}")


if __name__ == "__main__":
    main()
