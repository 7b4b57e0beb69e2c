"""Finds figures that a document copies from the tables of scenarios/results.md and that differ from them.

Open it when a table that copies figures gets another row. Only check-documents uses it.
"""
import re

RESULTS = "scenarios/results.md"
TIME, REAL_TIME = "ns per operation", "real programs, time per operation"
PEAK, REST, AVERAGE = "peak RSS", "RSS after", "real programs, average memory"
MEAN = "geometric mean"

# The page and the words of its row; the table of RESULTS and its row, as they begin. N: how many cases the mean covers.
COPIES = [
    ("README.md", "time, mean of N cases", TIME, MEAN),
    ("README.md", "… walking a list on a heap that has been in use for long", TIME, "littered_nodes_traverse"),
    ("README.md", "… passing blocks from one thread to another", TIME, "producer_consumer"),
    ("README.md", "time, mean of N real programs", REAL_TIME, MEAN),
    ("README.md", "average memory, mean of N real programs", AVERAGE, MEAN),
    ("README.md", "peak memory, mean of the scenarios", PEAK, MEAN),
    (RESULTS, "time, scenarios", TIME, MEAN),
    (RESULTS, "time, real programs", REAL_TIME, MEAN),
    (RESULTS, "peak memory, scenarios", PEAK, MEAN),
    (RESULTS, "memory after a rest, scenarios", REST, MEAN),
    (RESULTS, "average memory, real programs", AVERAGE, MEAN),
]


def tables_of(text):
    """Yields each table as a list of rows, which are lists of cells; the first row is the heading."""
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in table.splitlines()]
        yield rows[:1] + rows[2:]


def by_allocator(heading, row):
    """Returns the figures of a row, by the name of the allocator: a ratio without brackets and what stands before it, or
    - where there is none."""
    names = [re.sub(r"^system$", "glibc", cell.split(" ")[0].lower()) for cell in heading]
    return dict(zip(names[1:], [re.sub(r".*\(([\d.]+|-)\)$", r"\1", cell).replace("–", "-") for cell in row[1:]]))


def found_row(text, table, row):
    """Returns the heading and the row that begin with these words, or None twice."""
    for heading, *rows in tables_of(text):
        for each in rows:
            if heading[0].startswith(table) and each[0].startswith(row):
                return heading, each
    return None, None


def cases(text, table):
    """Returns how many cases the mean of a table of times covers. That of the scenarios leaves variants out: it covers those
    that can be lost, less the real programs."""
    real = next((len(rows) - 1 for heading, *rows in tables_of(text) if heading[0].startswith(REAL_TIME)), 0)
    _, lost = found_row(text, "behind the best other", "time")
    return real if table in (REAL_TIME, AVERAGE) else int(lost[1].split(" of ")[1]) - real if lost else 0


def faults(texts):
    """Yields a message for each row that differs, or that is not there."""
    if RESULTS not in texts:
        return
    results = texts[RESULTS]
    for page, words, table, row in COPIES:
        words = words.replace(" N ", f" {cases(results, table)} ")
        there, here = found_row(results, table, row), found_row(texts.get(page, ""), "", words)
        if there[0] is None:
            yield f"{RESULTS}: no table '{table}…' with a row '{row}…', which {page} copies"
        elif here[0] is None:
            yield f"{page}: no row '{words}', with figures of {RESULTS}"
        elif by_allocator(*here) != by_allocator(*there):
            yield f"{page}: the row '{words}' has {by_allocator(*here)}; {RESULTS} has {by_allocator(*there)}"
