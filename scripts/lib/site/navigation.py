"""What the site shows, and where: each document of the repository, and each public header, in the order of its menu.

Open it when a document or a header is new: scripts/check-documents says when one is missing here. The order follows
what users do: preload, compare, read statistics, link; then the interfaces, and what only matters to who changes
Sluice.
"""

HEADERS = "lib/include/sluice/"
DECISIONS = "lib/docs/decisions/"

# Sections of the menu. An entry is a document, a pair of its title in the menu and the document where that is shorter
# than its heading, or a group: its title and its entries. An entry that ends in "*" stands for all in that folder that
# are named nowhere else. Headers stand for what is made of their comments.
MENU = [
    ("Start", "README.md"),
    ("Install", "lib/docs/install.md"),
    ("Preload", [
        ("Options", "lib/docs/options.md"),
        ("Memory", "lib/docs/memory.md"),
        ("Memory errors and security", "lib/docs/memory-errors.md"),
        ("Limits", "lib/docs/limits.md"),
        ("What a drop-in malloc must hold", "tests/preload/README.md"),
        ("Systems", "lib/docs/systems.md"),
        ("macOS", "lib/docs/macos.md"),
    ]),
    ("Compare", [
        ("The sluice command", "lib/docs/command.md"),
        ("Results", "scenarios/results.md"),
        ("Scenarios", "scenarios/README.md"),
        ("Real programs", "scenarios/programs/README.md"),
        ("Parts of the library", "scenarios/micro/README.md"),
    ]),
    ("Read statistics", [
        ("Statistics", "lib/docs/statistics.md"),
        ("Their JSON format", "lib/src/stats/README.md"),
        ("Heap profile", "lib/docs/profile.md"),
        ("Leaks", "lib/docs/leaks.md"),
        ("Running processes", "lib/docs/attach.md"),
    ]),
    ("Link", [
        ("Linking", "lib/docs/linking.md"),
        ("Languages", "lib/docs/languages.md"),
        ("Rust", "lib/bindings/rust/README.md"),
        ("Python", "lib/bindings/python/README.md"),
        ("Node", "lib/bindings/node/README.md"),
        ("Go", "lib/bindings/go/README.md"),
        ("Scopes and frames", "lib/docs/frames-and-scopes.md"),
        ("The header-only library", "lib/docs/library.md"),
        ("Which one do I want?", "lib/include/sluice/README.md"),
    ]),
    ("Reference", [
        ("C", [HEADERS + "sluice.h", HEADERS + "frame.h"]),
        ("Scopes and frames", [HEADERS + "scope.hpp", HEADERS + "frame.hpp"]),
        ("Pools", [HEADERS + name + ".hpp" for name in ("pool", "pool_resource", "stack_pool", "index_pool")]),
        ("Stacks and arenas", [HEADERS + name + ".hpp" for name in (
            "lifo_stack", "lifo_resource", "marker_arena", "marker_resource", "index_stack", "split_index_stack",
            "handle_stack")]),
        ("Containers", [HEADERS + name + ".hpp" for name in (
            "inline_vector", "inline_string", "inline_map", "inline_set", "inline_buffer", "inline_stream",
            "stream_buffer")]),
        ("Functions and checks", [HEADERS + name + ".hpp" for name in ("split", "hash", "violation")]),
    ]),
    ("Project", [
        ("Changelog", "CHANGELOG.md"),
        ("Security policy", "SECURITY.md"),
        ("Contributing", "CONTRIBUTING.md"),
        ("Licence", "LICENSE"),
        ("How it works", [
            ("Inside the heap", "lib/src/README.md"),
            "lib/docs/internals/*",
            ("Tests", "tests/README.md"),
        ]),
        ("Decisions", [("All decisions", DECISIONS + "README.md"), DECISIONS + "*"]),
    ]),
]

# Headers that others include, and that have no page of their own.
PARTS = {HEADERS + "frame_types.h", HEADERS + "frame_chunks.h"}


def named(entries):
    """Yields each document, header and folder pattern of these entries, at any depth."""
    for entry in entries:
        target = entry[1] if isinstance(entry, tuple) else entry
        if isinstance(target, list):
            yield from named(target)
        else:
            yield target


def folder_of(pattern, paths):
    """Returns the documents that a pattern of the menu stands for."""
    own = set(named(MENU))
    return [path for path in paths if path.startswith(pattern[:-1]) and path.endswith(".md") and path not in own]


def faults(paths):
    """Yields a message for each document or public header that the menu lacks, and for each that is not there."""
    patterns = tuple(target[:-1] for target in named(MENU) if target.endswith("*"))
    own = {target for target in named(MENU) if not target.endswith("*")}
    known = set(paths)
    for target in sorted(own - known):
        yield f"scripts/lib/site/navigation.py: there is no {target}"
    for path in paths:
        is_header = path.startswith(HEADERS) and "/" not in path[len(HEADERS):] and path.endswith((".h", ".hpp"))
        if (path.endswith(".md") or is_header) and path not in own | PARTS and not path.startswith(patterns):
            yield f"scripts/lib/site/navigation.py: no word of {path}; the site shows each document and public header"
