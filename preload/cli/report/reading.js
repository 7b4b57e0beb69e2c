// How to read a report, in words. Open it when a figure is made in another way, or when readers ask.
const percent = (share) => Number((share * 100).toFixed(2)) + unit_space + "%";
const paragraph = (...parts) => make("p", {}, ...parts);
const strong = (text) => make("b", {}, text);

// `more` are paragraphs that hold for the one kind of report only.
function reading_section(report, more) {
  const confidence = field(report, "confidence");
  const sure = is_number(confidence) ? percent(confidence) : "high";
  const baseline = field(report, "baseline") ?? "the baseline";
  const has_curves = list(report, "curves").length > 0;
  return section(
    2,
    "How to read it",
    make(
      "div",
      { class: "prose" },
      paragraph(
        strong("Less is better"),
        `, in every chart and table: less time, less memory; but for ${has_curves ? "speed-ups, and for " : ""}a program's ` +
          "own figure that says the reverse.",
      ),
      paragraph(
        ...["A value is the ", strong("median"), " of its samples. The whisker on a bar is the ", strong("interval")],
        ` that holds the true median with ${sure} confidence; it is missing where there are too few samples for one.`,
      ),
      paragraph(
        strong(`Against ${baseline}`),
        ` is a ratio: the figure of an allocator divided by that of ${baseline}, from runs that followed one ` +
          "another. Those of times are of the faster half of the runs, which other work on the machine disturbs " +
          `least. Below 1 is less. The interval in brackets holds the ratio with ${sure} confidence; ` +
          "where it holds 1, or comes too close to 1 to matter, the verdict is “no sure difference”. “Best” marks " +
          "who is surely better than each of the others. A place is one more than the number of those that are surely " +
          "better: who differ by less share one, and where nobody does there is none.",
      ),
      more.map((text) => paragraph(text)),
      paragraph(
        strong("Latencies"),
        " are of single calls, timed one by one in a run of its own; what taking the time costs is subtracted. The " +
          "longest calls are those in which the system interrupted the program or gave it memory.",
      ),
      paragraph("Headings of tables sort by their column. Each allocator has one colour on the whole page."),
    ),
  );
}

function memory_reading(report) {
  const gap = field(field(report, "memory_of_all"), "longest_gap_ms");
  if (!is_number(gap))
    return (
      "Memory is the most that was resident at once of the largest of the program's processes: this document does not " +
      "know what all held together."
    );
  return (
    "Peak memory is the most that the program and all that it started held at once: of one process what the system " +
    "counts as its peak, of several the sum of their shares (PSS), in which a page of several counts once. It was read " +
    `${seconds_text(gap / 1000)} apart at most: a process that lived for less may have been missed, and the peak may ` +
    "have been higher; it is never less than that of the largest process, which the system counts. Average memory is the " +
    "mean of these readings over the time that the program ran, its rests included. Memory over time adds " +
    "up what is resident in each process, so that a page of several counts in each."
  );
}

const compare_reading = (report) => [
  "Wall time is from the start of the program to its end. " + memory_reading(report),
  "A figure of the program's own, or its load's, stands first, and decides who is best where it is known whether more " +
    "or less of it is better. The counts of the system are shown as they are.",
];

const bench_reading = (report) => [
  "A time is in nanoseconds per operation; what an operation is, each scenario tells. Samples of the allocators are " +
    "taken in turn, so that what slows the machine down meets all of them.",
  "To the best other is the allocator's median divided by the lowest median among the other allocators. The geometric means are of this ratio, over the cases of real programs and over those built-in " +
    "ones in which each object is allocated and freed by itself; an allocator that lacks one of them has none.",
  ...(list(report, "curves").length
    ? [
        "Speed-up is the median with the fewest threads divided by that with more, of one allocator: how many times as " +
          "many operations it then does at once in the same time. Its share of the linear one is the speed-up divided by " +
          "how many times as many threads there are. A name such as pair@2 is the scenario with 2 threads.",
      ]
    : []),
  "Peak is the most memory that was resident at once: of a built-in scenario in its one process, of a real program in " +
    "all its processes, as the sum of their shares (PSS) at its highest reading, or in its largest one where that had " +
    "more. At rest is what still was after it had freed its memory " +
    `and waited${is_number(field(report, "quiet_seconds")) ? " for " + seconds_text(report.quiet_seconds) : ""}.`,
];
