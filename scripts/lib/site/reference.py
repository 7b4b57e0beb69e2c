"""Makes the reference of C and C++: a page for each public header, with its declarations and what their comments
promise.

Open it when a declaration is missing, or has the wrong comment. libclang reads the headers, so that a page shows
what the compiler sees: signatures stand as they are written, without their bodies, and a comment belongs to the
declaration that it precedes. Declarations that follow one another without a blank line or a comment between them
share one.
"""
import os
import re
import shutil
import subprocess

import clang.cindex as clang

import contracts
import navigation
import pages

Kind = clang.CursorKind
CLASSES = (Kind.CLASS_DECL, Kind.STRUCT_DECL, Kind.CLASS_TEMPLATE, Kind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION)
FUNCTIONS = (Kind.FUNCTION_DECL, Kind.FUNCTION_TEMPLATE, Kind.CXX_METHOD, Kind.CONSTRUCTOR, Kind.DESTRUCTOR,
             Kind.CONVERSION_FUNCTION)
TYPES = (Kind.TYPEDEF_DECL, Kind.TYPE_ALIAS_DECL, Kind.TYPE_ALIAS_TEMPLATE_DECL, Kind.USING_DECLARATION)
VALUES = (Kind.VAR_DECL, Kind.FIELD_DECL, Kind.ENUM_DECL)
PUBLIC = clang.AccessSpecifier.PUBLIC


def compiler_headers():
    """Returns the folder of the headers that a compiler brings itself, as stddef.h."""
    for name in ("clang++-14", "clang++", "clang++-15", "clang++-16"):
        if shutil.which(name):
            folder = subprocess.run([name, "-print-resource-dir"], capture_output=True, text=True, check=True).stdout
            return os.path.join(folder.strip(), "include")
    raise SystemExit("scripts/site: error: no clang++ here, whose headers the reference needs (Debian: clang-14)")


def signature_of(text):
    """Returns a declaration without its body and without the initializers of a constructor."""
    depth, seen_arguments = 0, False
    for at, letter in enumerate(text):
        if letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
            seen_arguments = True
        elif depth == 0 and letter in "{;":
            return text[:at]
        elif depth == 0 and letter == ":" and seen_arguments and ":" not in (text[at - 1], text[at + 1:at + 2]):
            return text[:at]
    return text


def without_margin(text):
    lines = text.splitlines()
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[margin:] for line in lines)


class Source:
    """The text of one header, from which declarations are shown as they are written."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.lines = self.text.splitlines()

    def of(self, cursor):
        """Returns the lines of a declaration with what stands before it on its first line, as attributes do."""
        start, end = cursor.extent.start, cursor.extent.end
        data = self.text.encode()
        begin = data.rfind(b"\n", 0, start.offset) + 1
        return data[begin:end.offset].decode()

    def shown(self, cursor):
        """Returns a declaration as a reader should see it."""
        text = re.sub(r"(?m:^ *// NOLINT.*\n)| *// NOLINT.*|\bSLUICE_WEAK ", "", self.of(cursor))
        if cursor.kind in FUNCTIONS:
            text = signature_of(text)
        elif cursor.kind in CLASSES and not is_plain(cursor):
            text = text[:text.index("{")] if "{" in text else text
        text = without_margin(text).strip()
        return text if text.endswith(";") or cursor.kind in CLASSES and not is_plain(cursor) else text + ";"


def is_plain(cursor):
    """Whether a class is only a list of members, which its source shows best."""
    return cursor.kind == Kind.STRUCT_DECL and not any(
        child.kind in FUNCTIONS + (Kind.CXX_BASE_SPECIFIER,) for child in cursor.get_children())


WORDS = ("Constructors", "Destructor")


def name_of(cursor):
    """Returns the name that a heading shows."""
    if cursor.kind == Kind.CONSTRUCTOR or cursor.kind == Kind.FUNCTION_TEMPLATE and is_constructor(cursor):
        return "Constructors"
    if cursor.kind == Kind.DESTRUCTOR:
        return "Destructor"
    if cursor.kind == Kind.CONVERSION_FUNCTION:
        return "operator " + " ".join(token.spelling for token in cursor.get_tokens()).split("operator ", 1)[1].split(
            " (", 1)[0].replace(" ", "")
    return cursor.spelling


def is_constructor(cursor):
    parent = cursor.semantic_parent
    return parent is not None and parent.kind in CLASSES and re.sub(r"<.*", "", cursor.spelling) == parent.spelling


def is_deleted(cursor, source):
    return source.of(cursor).rstrip(" ;").endswith("= delete")


class Group:
    """Declarations that share a comment."""

    def __init__(self, cursor, source):
        self.comment = cursor.raw_comment
        self.cursors, self.sources = [], []
        self.add(cursor, source)

    def add(self, cursor, source):
        self.cursors.append(cursor)
        self.sources.append(source)
        self.last_line = cursor.extent.end.line
        self.source = source

    def takes(self, cursor, source):
        """Whether a declaration follows at once and has no comment. The contract of one function is not that of the
        next, unless it has the same name, or is only there to be deleted."""
        if cursor.raw_comment or source is not self.source:
            return False
        is_contract = self.comment and re.match(r"(?://|/\*) (?:Returns|Effects|Requires):", self.comment)
        if is_contract and name_of(cursor) != name_of(self.cursors[-1]) and not is_deleted(cursor, source):
            return False
        between = source.lines[self.last_line:cursor.extent.start.line - 1]
        return not any(not line.strip() or line.lstrip().startswith(("//", "/*")) for line in between)

    def title(self):
        """Returns the heading, in Markdown."""
        there = [cursor for cursor in self.cursors if not is_deleted(cursor, self.source)] or self.cursors
        names = list(dict.fromkeys(name_of(cursor) for cursor in there))
        shown = [name if name in WORDS else f"`{name}`" for name in names[:3] if name]
        return ", ".join(shown) + (", …" if len(names) > 3 else "") or "Constants"

    def is_internal(self):
        return bool(self.comment and re.search(r"\bInternal\b[.;]", self.comment))


def grouped(cursors, sources):
    groups = []
    for cursor in cursors:
        source = sources(cursor)
        if groups and groups[-1].takes(cursor, source):
            groups[-1].add(cursor, source)
        else:
            groups.append(Group(cursor, source))
    return [group for group in groups if not group.is_internal()]


class Reference:
    """The pages of all public headers."""

    def __init__(self, root):
        self.root = str(root)
        self.names = contracts.Names()
        self.sources = {}
        self.by_header = {}
        self.includes = {}
        self.read()

    def relative(self, cursor):
        file = cursor.location.file
        return os.path.relpath(file.name, self.root) if file and file.name.startswith(self.root) else ""

    def source(self, cursor):
        path = cursor.location.file.name
        if path not in self.sources:
            self.sources[path] = Source(path)
        return self.sources[path]

    def headers(self):
        return [target for target in navigation.named(navigation.MENU) if target.endswith((".h", ".hpp"))]

    def read(self):
        """Reads all headers at once: what they include is then read once."""
        index = clang.Index.create()
        text = "".join(f'#include "{os.path.join(self.root, header)}"\n' for header in self.headers())
        unit = index.parse("all.cpp", unsaved_files=[("all.cpp", text)], args=[
            "-std=c++20", "-I", os.path.join(self.root, "lib/include"), "-isystem", compiler_headers(),
            "-fparse-all-comments"])
        problems = [problem for problem in unit.diagnostics if problem.severity >= clang.Diagnostic.Error]
        if problems:
            raise SystemExit(f"scripts/site: error: the headers could not be read: {problems[0]}")
        self.collect(unit.cursor)
        self.place_parts()

    def collect(self, cursor):
        for child in cursor.get_children():
            if child.kind in (Kind.NAMESPACE, Kind.LINKAGE_SPEC, Kind.UNEXPOSED_DECL):
                if self.relative(child) and child.spelling not in ("detail", "std"):
                    self.collect(child)
            elif child.kind in CLASSES + FUNCTIONS + TYPES + VALUES and self.relative(child):
                self.by_header.setdefault(self.relative(child), []).append(child)

    def place_parts(self):
        """What a header of ours includes and has no page itself belongs to the first header that includes it."""
        shown = self.headers()
        for header in shown:
            with open(os.path.join(self.root, header), encoding="utf-8") as file:
                included = re.findall(r'^#include "(sluice/[^"]+)"', file.read(), re.M)
            for part in ("lib/include/" + name for name in included):
                if part not in shown and part in self.by_header and not part.endswith("frame_chunks.h"):
                    self.by_header.setdefault(header, []).extend(self.by_header.pop(part))

    def declarations(self, header):
        """Returns what a page shows of the outermost level: each once, and none that only announces or specializes."""
        found, seen = [], set()
        for cursor in self.by_header.get(header, []):
            in_c = header.endswith(".h")
            if cursor.kind in CLASSES and (in_c or not cursor.is_definition()):
                continue  # in C its typedef is shown
            if in_c and cursor.kind in FUNCTIONS + (Kind.VAR_DECL,) and not cursor.raw_comment:
                continue
            place = (cursor.extent.start.offset, cursor.extent.end.offset, cursor.location.file.name)
            if place not in seen:
                seen.add(place)
                found.append(cursor)
        return found

    def members(self, cursor, known=()):
        """Yields the public members of a class and of its public bases, unless a name is known already."""
        own, bases = [], []
        is_public = not re.search(r"\bclass +" + re.escape(cursor.spelling), self.source(cursor).shown(cursor))
        for child in cursor.get_children():
            if child.kind == Kind.CXX_ACCESS_SPEC_DECL:
                is_public = child.access_specifier == PUBLIC
            elif child.kind == Kind.CXX_BASE_SPECIFIER and child.access_specifier == PUBLIC:
                bases += [part.referenced for part in child.get_children()
                          if part.kind in (Kind.TEMPLATE_REF, Kind.TYPE_REF)][:1]
            elif is_public and child.kind in FUNCTIONS + TYPES + VALUES + CLASSES:
                if child.spelling not in known or is_constructor(child):
                    own.append(child)
        yield from own
        names = set(known) | {child.spelling for child in own}
        for base in bases:
            base = base.get_definition() or base
            if base.kind in CLASSES and "detail" in self.relative(base) and self.is_internal_class(base):
                yield from (member for member in self.members(base, names) if not is_constructor(member)
                            and member.kind in FUNCTIONS and member.kind != Kind.DESTRUCTOR
                            and not member.spelling.endswith("_"))

    @staticmethod
    def is_internal_class(cursor):
        return cursor.semantic_parent.spelling == "detail"

    def register(self):
        """Makes the names of all pages known, so that any page may lead to any."""
        for header in self.headers():
            page = pages.place_of(header)
            self.names.add(header.rsplit("/", 1)[1], page, "top")
            for cursor in self.declarations(header):
                if cursor.kind in CLASSES + FUNCTIONS + TYPES:
                    self.names.add(cursor.spelling, page, anchor_of(cursor))

    def page(self, header):
        page = pages.place_of(header)
        with open(os.path.join(self.root, header), encoding="utf-8") as file:
            text = file.read()
        name = header.rsplit("/", 1)[1]
        language = "c" if name.endswith(".h") else "cpp"
        intro = re.match(r"/\*(?s:.*?)\*/|(?://.*\n)+", text)
        if not intro:
            raise SystemExit(f"scripts/site: error: {header} begins with no comment")
        parts = [f"# {name} {{#top}}", f"```{language}\n#include <sluice/{name}>\n```",
                 contracts.render(intro[0], self.names, page, language)]
        used = set()
        macros = re.findall(r"^#define SLUICE_VERSION\w* .*$", text, re.M)
        if macros:
            parts += ["## Version {#version}", "```c\n" + "\n".join(macros) + "\n```"]
        for group in grouped(self.declarations(header), self.source):
            parts += self.shown(group, page, language, 2, used)
        return "\n\n".join(part for part in parts if part) + "\n"

    def shown(self, group, page, language, level, used, scope=""):
        """Returns the parts of a page that show a group, and the members of a class."""
        anchor = unique(anchor_of(group.cursors[0], scope), used)
        parts = [f"{'#' * level} {group.title()} {{#{anchor}}}"]
        code = "\n".join(source.shown(cursor) for cursor, source in zip(group.cursors, group.sources))
        parts.append(f"```{language}\n{code}\n```")
        if group.comment:
            parts.append(contracts.render(group.comment, self.names, page, language))
        for cursor in group.cursors:
            if cursor.kind in CLASSES and not is_plain(cursor):
                parts += self.shown_members(cursor, page, language, level, used)
        return parts

    def shown_members(self, cursor, page, language, level, used):
        parts, types, rest = [], [], []
        for member in self.members(cursor):
            is_name = member.kind in TYPES and not member.raw_comment
            (types if is_name else rest).append(member)
        if types:
            code = "\n".join(self.source(member).shown(member) for member in types)
            parts += [f"{'#' * (level + 1)} Types {{#{unique(cursor.spelling + '-types', used)}}}",
                      f"```{language}\n{code}\n```"]
        for group in grouped(rest, self.source):
            parts += self.shown(group, page, language, level + 1, used, cursor.spelling + "-")
        return parts


def anchor_of(cursor, scope=""):
    name = name_of(cursor).lower() if name_of(cursor) in WORDS else name_of(cursor)
    name = name.replace("operator", "operator-").replace("==", "equal").replace("<=>", "order").replace("[]", "at")
    name = re.sub(r"[^\w-]+", "-", name.replace("<<", "put").replace(">>", "get").replace("=", "assign")).strip("-")
    return scope + (name or "constants")


def unique(anchor, used):
    number = 1
    candidate = anchor
    while candidate in used:
        number += 1
        candidate = f"{anchor}-{number}"
    used.add(candidate)
    return candidate
