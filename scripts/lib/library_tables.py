"""Lays out what scripts/bench-library measured, as Markdown. Open it to change a table or what is promised.

A row's ratio is ours divided by the best peer, so that below 1 is faster; rows that are slower stand in bold.
"""
import math
import os
import pathlib
import platform
import re
import subprocess

OURS = "sluice::"
LOST = 1.005  # what is shown as more than 1.00

# What is promised: a sentence, components, cases, ours, the peers that it is about, and the ratio that it allows.
PROMISES = [
    ("`pool` and `stack_pool`, a block taken and given back at once: half of the best malloc pair",
     "pools", r"^pair_", r"::(pool|stack_pool)$", r"^(malloc/free|new/delete)", 0.50),
    ("the same in the other orders",
     "pools", r"^(?!pair_)", r"::(pool|stack_pool)$", r"^(malloc/free|new/delete)", 0.50),
    ("`pool` and `stack_pool`: no slower than boost::pool and pmr::unsynchronized_pool_resource",
     "pools", r"", r"::(pool|stack_pool)$", r"^(boost::pool|pmr::)", 1.00),
    ("`pool_resource`: no slower than pmr::unsynchronized_pool_resource",
     "pool_resource", r"", r"", r"^pmr::unsync", 1.00),
    ("`inline_vector`, push, iterate, move, splice: the best of LLVM, boost and absl",
     "inline_vector", r"^(push|iterate|move|splice)", r"", r"^(llvm|boost|absl)::", 1.05),
    ("`inline_map` and `inline_set` up to N: faster than std::unordered_*",
     "inline_map|inline_set", r"_(4|8|16)$", r"", r"^std::unordered", 1.00),
    ("the same beyond N: absl::flat_hash_*", "inline_map|inline_set", r"_(100|1000|100000)$", r"", r"^absl::", 1.20),
]


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def time_text(nanoseconds):
    """Three digits that count, as in the tables of scripts/bench."""
    if nanoseconds < 10:
        return f"{nanoseconds:.2f}"
    return f"{nanoseconds:.1f}" if nanoseconds < 100 else f"{nanoseconds:.0f}"


def ratio_text(ratio, limit=LOST):
    return f"**{ratio:.2f}**" if ratio > limit else f"{ratio:.2f}"


def markdown(rows):
    """Returns a table, the first row of which is its head; all columns but the first are numbers, right-aligned."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(row, widths))) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) if i == 0 else "-" * (width + 1) + ":"
                                   for i, width in enumerate(widths)) + "|")
    return "\n".join(lines)


def is_ours(who):
    return who.startswith(OURS)


def compared(medians):
    """Yields (component, case, ours, its time, best peer, its time) for each of ours that has a peer."""
    for (component, case), times in medians.items():
        peers = {who: time for who, time in times.items() if not is_ours(who)}
        for who, time in times.items():
            if is_ours(who) and peers:
                best = min(peers, key=peers.get)
                yield component, case, who, time, best, peers[best]


def summary(rows):
    """`rows` as compared() yields them."""
    ratios = [time / best_time for _, _, _, time, _, best_time in rows]
    lost = sum(ratio > LOST for ratio in ratios)
    return (f"{len(ratios)} case{'s' * (len(ratios) != 1)}, geometric mean of the ratios {geometric_mean(ratios):.2f}; "
            f"slower than the best peer in {lost}.")


def component_table(component, medians):
    found = {row: times for row, times in medians.items() if row[0] == component}
    rows = list(compared(found))
    peers = list(dict.fromkeys(who for times in found.values() for who in times if not is_ours(who)))
    several = len({who for _, _, who, *_ in rows}) > 1
    table = [["ns" if several else f"ns, {rows[0][2]}", "ours", "best peer", "ratio", *peers]]
    for _, case, who, time, best, best_time in rows:
        label = f"{case}, {who.removeprefix(OURS)}" if several else case
        times = found[component, case]
        table.append([label, time_text(time), best, ratio_text(time / best_time),
                      *(time_text(times[peer]) if peer in times else "" for peer in peers)])
    return f"### {component}\n\n{markdown(table)}\n\n{summary(rows)}"


def promises_table(medians):
    table = [["promised, and the ratio that it allows", "allowed", "cases", "geometric mean", "worst", "worst case",
              "beyond"]]
    for sentence, components, cases, ours, peers, limit in PROMISES:
        ratios = {}
        for (component, case), times in medians.items():
            if not re.fullmatch(components, component) or not re.search(cases, case):
                continue
            others = [time for who, time in times.items() if not is_ours(who) and re.search(peers, who)]
            for who, time in times.items():
                if others and is_ours(who) and re.search(ours, who):
                    ratios[f"{case} ({who.removeprefix(OURS)})"] = time / min(others)
        if ratios:
            worst = max(ratios, key=ratios.get)
            beyond = sum(ratio > limit + 0.005 for ratio in ratios.values())
            table.append([sentence, f"{limit:.2f}", str(len(ratios)), f"{geometric_mean(ratios.values()):.2f}",
                          ratio_text(ratios[worst], limit + 0.005), worst, f"**{beyond}**" if beyond else "0"])
    return markdown(table) if len(table) > 1 else ""


def sizes_table(sizes):
    table = [["bytes", "capacity", "whole object", "bits an entry"]]
    for entry in sizes:
        table.append([entry["name"], str(entry["capacity"] or ""), str(entry["bytes"]),
                      f"{entry['bits']:.2f}" if entry["bits"] else ""])
    return markdown(table)


def package_version(library):
    """Returns the version of the package that a library came with, without Debian's part; empty when nobody knows."""
    try:
        owner = subprocess.run(["dpkg", "-S", os.path.realpath(library)], capture_output=True, text=True).stdout
        package = owner.split(": ")[0].split(",")[0].strip()
        version = package and subprocess.run(["dpkg-query", "-W", "-f=${Version}", package],
                                             capture_output=True, text=True).stdout
    except OSError:
        return ""
    return re.split(r"[-+]", version.split(":")[-1])[0] if version else ""


def value_in(path, key):
    """Returns the value after `key` and a colon on its line of a text file; empty when there is none."""
    try:
        lines = pathlib.Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.split(": ", 1)[1] for line in lines if line.startswith(key) and ": " in line), "")


def machine_line(context, mallocs, rounds):
    """Returns what ran on what, in the words of scripts/bench, with the versions of all peers."""
    try:
        setting = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
        huge_pages = setting[setting.index("[") + 1:setting.index("]")]
    except (OSError, ValueError):
        huge_pages = "unknown"
    system = platform.uname()
    versions = [context.get("compiler", "unknown compiler")]
    versions += [f"{name} {context[name].replace('_', '.')}" for name in ("boost", "absl", "LLVM", "fmt")
                 if name in context]
    versions.append(" ".join(platform.libc_ver()))
    for name, library in mallocs.items():
        if name != "sluice":
            versions.append(f"{name} {package_version(library)}".rstrip())
    return (f"{system.system} {system.release} {system.machine}, {os.cpu_count()} × "
            f"{value_in('/proc/cpuinfo', 'model name') or 'processor'}, transparent huge pages: {huge_pages}. "
            f"{', '.join(versions)}. Medians of {rounds} round{'s' * (rounds != 1)}; nanoseconds of processor time. "
            "The ratio is ours to the best peer (below 1: faster; **bold**: slower).")


def document(machine, medians, sizes):
    parts = [machine]
    everything = list(compared(medians))
    if everything:
        parts.append(f"All components: {summary(everything)}")
    promises = promises_table(medians)
    if promises:
        parts.append(promises)
    for component in dict.fromkeys(component for component, _ in medians):
        parts.append(component_table(component, medians))
    if sizes:
        parts.append(f"### Memory\n\n{sizes_table(sizes)}")
    return "\n\n".join(parts)
