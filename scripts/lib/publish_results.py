"""Puts the results of a full run of `sluice bench` into scenarios/results.md; scripts/bench --publish calls it. Open it to
change what is said around the tables.

Usage: publish_results.py RESULTS.json TABLES.md RESULTS.md COMMAND

What Sluice loses is taken from the results, not chosen.
"""
import json
import pathlib
import sys

START, END = "<!-- results -->\n", "<!-- end of results -->\n"
LOSSES_START, LOSSES_END = "<!-- losses -->\n", "<!-- end of losses -->\n"
LOST = 1.05  # beyond this a case is lost: less is noise

def versions(document):
    """Returns what was compared, with the versions that are known."""
    words = []
    for allocator in document["allocators"]:
        name = allocator["name"]
        version = document["sluice_version"] if name == "sluice" else allocator["version"] or ""
        name = {"system": "glibc"}.get(name, name)
        words.append(version if version.startswith(name) else f"{name} {version}".rstrip())
    return ", ".join(words)


def best_of_others(values):
    """Returns the name and the value of the least among the allocators but sluice, or None."""
    others = {name: value for name, value in values.items() if name != "sluice" and value}
    return min(others.items(), key=lambda item: item[1]) if others else None


def figures(document):
    """Yields a title, a name and the figures by allocator for each row of the tables that stands for plain malloc."""
    for scenario in document["scenarios"]:
        if scenario["variant"] not in (None, "plain"):
            continue
        for case in scenario["cases"]:
            yield "time", case["name"], {name: each["median"] for name, each in case["allocators"].items()}
        memory = scenario["memory"]
        yield "peak of memory", scenario["name"], {name: each["peak_kib"]["median"] for name, each in memory.items()}
        yield "memory at rest", scenario["name"], {name: each["quiet_kib"] for name, each in memory.items()}
        if scenario["kind"] == "program":
            average = {name: each["average_kib"]["median"] for name, each in memory.items() if each["average_kib"]}
            yield "average memory of real programs", scenario["name"], average


def losses(document):
    """Returns, by title, what sluice is behind in: the ratio, the row and the allocator that is best there."""
    found = {}
    for title, name, values in figures(document):
        best = best_of_others(values)
        if best and values.get("sluice") and values["sluice"] / best[1] > LOST:
            found.setdefault(title, []).append((values["sluice"] / best[1], name, best[0]))
    return found


def losses_text(document):
    """Returns a table of what is lost, worst first."""
    lines = ["| behind the best other by more than 5 % in | cases | ratio, case and who is best there |", "|---|--:|---|"]
    counts = {}
    for title, _, values in figures(document):
        counts[title] = counts.get(title, 0) + (best_of_others(values) is not None)
    for title, rows in losses(document).items():
        text = "; ".join(f"{ratio:.2f} {name} ({best})" for ratio, name, best in sorted(rows, reverse=True))
        lines.append(f"| {title} | {len(rows)} of {counts[title]} | {text} |")
    return "\n".join(lines) + "\n"


def replaced(text, start, end, inside, file):
    """Returns the text with another part between two marks."""
    if start not in text or end not in text:
        sys.exit(f"publish_results.py: {file} has no {start.strip()} and {end.strip()}")
    before, rest = text.split(start, 1)
    return before + start + inside + end + rest.split(end, 1)[1]


def main():
    results, tables, page, command = sys.argv[1:]
    document = json.loads(pathlib.Path(results).read_text(encoding="utf-8"))
    failed = {name for scenario in document["scenarios"] for name in scenario["failures"]}
    if document["partial"] or failed & {"sluice", "system"}:
        sys.exit("publish_results.py: the run is partial, or Sluice or glibc failed in it: nothing is published")
    head = (f"Written by `{command}` on {document['date'][:10]}, built by {document['compiler']}: {versions(document)}.\n"
            f"The machine is shared: a difference of a few percent means nothing. `thread_churn` is mostly the kernel waking the other\n"
            f"processor, which moves by half from run to run.\n\n")
    text = pathlib.Path(page).read_text(encoding="utf-8")
    text = replaced(text, START, END, head + pathlib.Path(tables).read_text(encoding="utf-8") + "\n", page)
    text = replaced(text, LOSSES_START, LOSSES_END, losses_text(document), page)
    pathlib.Path(page).write_text(text, encoding="utf-8")
    print(f"{page} has the tables; its part 'In short' and the table of README.md repeat their means: scripts/check-documents names those that differ")


main()
