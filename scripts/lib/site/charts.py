"""Draws the tables of results as SVG: what each case takes under each allocator, as a ratio to the best of the others.

Open it when a chart should look different. A chart is made from the table beside it when the site is built: it has
no script, and takes its colours from the page (site.css). Positions across are in percent, so that it fits a
telephone with letters of the same size.
"""
import html
import math
import re

# As the tables call them, and as the charts do.
OTHERS = [("mimalloc", "mimalloc"), ("jemalloc", "jemalloc"), ("tcmalloc", "tcmalloc"), ("system", "glibc")]
LABELS = 38.0  # percent of the width, left of the axis
ROW = 20
TICKS = [1, 0.02, 0.05, 0.1, 0.2, 0.5, 2, 5, 10, 20, 50, 100, 1.5, 3, 0.7, 1.2]  # those first that matter most

# The tables that get a chart, by how their first cell begins.
CHARTED = ("geometric mean of the ratios", "ns per operation", "peak RSS, MiB", "RSS after",
           "real programs, time", "real programs, peak memory of all", "real programs, average memory")
# What has more rows is in the order of the ratios, and gets a heading.
LONG = 10


def ratio_of(cell):
    """Returns the ratio in a cell, which stands in brackets or alone; None where there is none."""
    found = re.search(r"\(([\d.]+)\)", cell) or re.fullmatch(r"\**([\d.]+)\**", cell.strip())
    return float(found[1]) if found else None


def is_variant(case, cases):
    """Whether a case is another way to write the one that ends in _plain, and so does not compare allocators."""
    return any(case.startswith(plain[:-len("plain")]) and case != plain for plain in cases if plain.endswith("_plain"))


def rows_of(heading, rows):
    """Returns pairs of a case and its ratios by allocator; variants and cases without all allocators are left out."""
    names = [re.sub(r"^glibc$", "system", cell.split()[0].lower()) for cell in heading[1:]]
    cases = [row[0] for row in rows]
    found = []
    for row in rows:
        ratios = {name: ratio_of(cell) for name, cell in zip(names, row[1:])}
        if not row[0].startswith("geometric mean") and not is_variant(row[0], cases) and all(ratios.values()):
            found.append((re.sub(r"_plain$", "", row[0]), ratios))
    return found


class Axis:
    """A logarithmic axis over ratios, and where a ratio lies on it in percent of the width."""

    def __init__(self, values):
        self.low, self.high = min(min(values) * 0.9, 0.8), max(max(values) * 1.1, 1.5)

    def at(self, value):
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return LABELS + 1.5 + share * (97.5 - LABELS)

    def ticks(self):
        """Returns those that lie on it, none closer to the last than a number is wide."""
        chosen = []
        for tick in TICKS:
            if self.low <= tick <= self.high and all(abs(self.at(tick) - self.at(each)) > 6 for each in chosen):
                chosen.append(tick)
        return sorted(chosen)


def row_of(case, ratios, axis, y):
    """Returns a row: a bar from 1 to the ratio of Sluice, and a dot for each of the others."""
    own, one = axis.at(ratios["sluice"]), axis.at(1)
    kind = "ahead" if ratios["sluice"] < 1 else "behind"
    told = ", ".join(f"{name} {ratios[key]:g}" for key, name in [("sluice", "sluice")] + OTHERS if key in ratios)
    parts = [f'<g><title>{html.escape(case)}: {told}</title>',
             f'<rect class="hit" x="0" y="{y - ROW / 2:g}" width="100%" height="{ROW}"/>',
             f'<text class="case" x="{LABELS}%" y="{y + 4:g}" text-anchor="end">{html.escape(case)}</text>',
             f'<rect class="{kind}" x="{min(own, one):.2f}%" y="{y - 5:g}" width="{abs(own - one):.2f}%" height="10"/>']
    for key, name in OTHERS:
        if key in ratios:
            parts.append(f'<circle class="{name}" cx="{axis.at(ratios[key]):.2f}%" cy="{y:g}" r="3.5"/>')
    parts.append(f'<circle class="sluice {kind}" cx="{own:.2f}%" cy="{y:g}" r="4.5"/></g>')
    return "".join(parts)


def chart(title, rows):
    """Returns a chart of pairs of a case and its ratios, those first that Sluice loses."""
    if len(rows) > LONG:
        rows = sorted(rows, key=lambda row: -row[1]["sluice"])
    axis = Axis([ratio for _, ratios in rows for ratio in ratios.values()])
    top, bottom = 24, 24 + ROW * len(rows)
    parts = []
    for tick in axis.ticks():
        kind = "one" if tick == 1 else "tick"
        at = f"{axis.at(tick):.2f}%"
        parts.append(f'<line class="{kind}" x1="{at}" x2="{at}" y1="{top - 4}" y2="{bottom + 4}"/>')
        parts += [f'<text class="scale" x="{at}" y="{y}" text-anchor="middle">{tick:g}</text>'
                  for y in (14, bottom + 18)]
    parts += [row_of(case, ratios, axis, top + ROW * (number + 0.5)) for number, (case, ratios) in enumerate(rows)]
    lost = sum(ratios["sluice"] > 1.05 for _, ratios in rows)
    told = f"{title}: {len(rows)} cases; Sluice is behind the best other by more than 5 % in {lost}" \
        if len(rows) > LONG else title
    key = "".join(f'<span class="{name}">{name}</span>' for name in ["ahead", "behind"] + [name for _, name in OTHERS])
    key = key.replace(">ahead<", ">sluice, ahead<").replace(">behind<", ">sluice, behind<")
    told = html.escape(told)
    return (f'<figure class="chart"><figcaption>{told}.<span class="key">{key}</span></figcaption>'
            f'<svg role="img" aria-label="{told}" width="100%" height="{bottom + 24}">{"".join(parts)}</svg></figure>')


def tables_of(lines):
    """Yields where each table of a page begins and ends, and its rows of cells, the heading first."""
    start = None
    for number, line in enumerate(lines + [""]):
        if line.startswith("|") and start is None:
            start = number
        elif not line.startswith("|") and start is not None:
            rows = [[cell.strip() for cell in each.strip("|").split("|")] for each in lines[start:number]]
            yield start, number, rows[:1] + rows[2:]
            start = None


def with_charts(text):
    """Returns a page with a chart before each table of ratios; long tables get a heading."""
    lines = text.split("\n")
    count = 0
    for start, end, (heading, *rows) in reversed(list(tables_of(lines))):
        if not heading[0].startswith(CHARTED) and len(rows) <= LONG:
            continue
        title = heading[0]
        new = []
        if len(rows) > LONG:
            anchor = "table-" + re.sub(r"\W+", "-", title.lower()).strip("-")
            new += ["", f"### {title[:1].upper() + title[1:]} {{#{anchor}}}", ""]
        if heading[0].startswith(CHARTED):
            new += [chart(title, rows_of(heading, rows)), ""]
            count += 1
        lines[start:end] = new + lines[start:end]
    if not count:
        raise SystemExit("scripts/site: error: a page of results has no table that a chart could be made of")
    return "\n".join(lines)
