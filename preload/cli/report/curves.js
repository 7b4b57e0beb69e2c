// How each case scales with the number of threads: a chart of speed-ups and a table of each. Open it to change what is
// shown of `sluice bench --threads 1,2,4`.
const without_point = (name) => name.replace(/@\d+$/, ""); // "pair@2" is pair with 2 threads
const points_of = (curve) =>
  list(curve, "points").filter((point) => is_number(field(point, "threads")) && point.threads > 0);
const is_over_committed = (point) => field(point, "over_committed") === true;

// Both axes are of powers of two, so that linear is a straight line, and what falls short of it by half is as far below
// it everywhere.
const scaling_point = (threads, speed_up) => ({ x: Math.log2(threads), y: Math.log2(speed_up), threads, speed_up });

function speed_ups(curve, allocator) {
  const known = points_of(curve).map((point) => [point.threads, field(entry_of(point, allocator), "speed_up")]);
  return known
    .filter(([, speed_up]) => is_number(speed_up) && speed_up > 0)
    .map(([threads, speed_up]) => scaling_point(threads, speed_up));
}

function threads_axis(points) {
  const text = (value) => count_text(2 ** value);
  const values = points.map(({ threads }) => Math.log2(threads));
  const afterBuildTicks = (scale) => {
    const pixels = (scale.chart.width - 100) / Math.max(1, values.at(-1) - values[0]); // of one unit
    scale.ticks = [];
    for (const value of values) {
      const last = scale.ticks.at(-1)?.value;
      if (last === undefined || (value - last) * pixels >= text(value).length * 7 + 6) scale.ticks.push({ value });
    }
  };
  const margin = (values.at(-1) - values[0]) * 0.03; // for the first and the last marks
  const range = { min: values[0] - margin, max: values.at(-1) + margin };
  return axis("threads", text, { type: "linear", ...range, afterBuildTicks, ticks: { autoSkip: false } });
}

function speed_up_figure(report, curve, title) {
  const points = points_of(curve);
  if (points.length < 2) return null;
  const linear = points.map(({ threads }) => scaling_point(threads, threads / points[0].threads));
  return line_figure({
    title,
    description:
      `Throughput with so many threads, as a multiple of that with ${counted(points[0].threads, "thread")} under the same ` +
      "allocator. More is better; the dashed line is linear.",
    series: names_of(report).map((allocator) => ({ allocator, points: speed_ups(curve, allocator) })),
    reference: { label: "linear", points: linear },
    x: () => threads_axis(points),
    y: () =>
      axis("speed-up", (value) => tick_text(2 ** value) + unit_space + "×", {
        type: "linear",
        ticks: { stepSize: 1 },
      }),
    label: ({ threads, speed_up }) => `${factor_text(speed_up)} with ${counted(threads, "thread")}`,
    marked: "all",
  });
}

function speed_up_cell(entry) {
  const median = field(entry, "median");
  if (!is_number(median)) return nothing;
  const share = is_number(field(entry, "of_linear")) ? percent_of_linear(entry.of_linear) : no_value;
  const remark = `(${factor_text(field(entry, "speed_up"))}, ${share})`;
  return { content: [nanoseconds_text(median), make("span", { class: "beside" }, " " + remark)], value: median };
}
const percent_of_linear = (share) => Math.round(share * 100) + unit_space + "%";

// A cell has the time per operation, the speed-up and its share of the linear one.
function speed_up_table(report, curve) {
  const names = names_of(report);
  const columns = [
    { title: "Threads" },
    ...names.map((name) => ({
      ...column(name, "time per operation; speed-up, share of the linear one"),
      label: allocator_label(name),
    })),
  ];
  const rows = points_of(curve).map((point) => [
    {
      content: [
        count_text(point.threads),
        is_over_committed(point) ? make("span", { class: "tag" }, "over-committed") : null,
      ].filter(Boolean),
      value: point.threads,
    },
    ...names.map((name) => speed_up_cell(entry_of(point, name))),
  ]);
  const caption = `${field(curve, "name") ?? ""}: time per operation, speed-up and its share of the linear one`;
  return rows.length ? make_table(caption, columns, rows) : null;
}

function over_committed_note(report, curves) {
  if (!curves.some((curve) => points_of(curve).some(is_over_committed))) return null;
  const processors = field(report, "processors");
  return note(
    "warning",
    make("b", {}, "Over-committed: "),
    (is_number(processors) ? counted(processors, "processor") + " could be used. " : "") +
      "More threads than processors take turns: what is marked so tells what more threads cost, and not how an " +
      "allocator scales.",
  );
}

// One for each scenario, with all of its cases.
function scaling_section(report, scenario, curves) {
  const titles = without_prefix(curves.map(({ name }) => String(name)));
  const tables = curves.map((curve) => speed_up_table(report, curve)).filter(Boolean);
  return section(
    3,
    `${scenario}, by threads`,
    chart_grid(
      curves.map((curve, index) =>
        speed_up_figure(report, curve, curves.length > 1 ? `Speed-up, ${titles[index]}` : "Speed-up"),
      ),
    ),
    tables.length
      ? make(
          "details",
          { open: !has_charts },
          make("summary", {}, "Tables of ", make("b", {}, scenario), " by threads"),
          ...tables,
        )
      : null,
  );
}

// Null where no scenario ran with several numbers of threads.
function speed_up_section(report) {
  const curves = list(report, "curves").filter((curve) => points_of(curve).length > 0);
  const scenarios = [...new Set(curves.map((curve) => String(field(curve, "scenario") ?? "")))];
  if (scenarios.length === 0) return null;
  return section(
    2,
    "Speed-up by threads",
    over_committed_note(report, curves),
    ...scenarios.map((scenario) =>
      scaling_section(
        report,
        scenario,
        curves.filter((curve) => String(field(curve, "scenario") ?? "") === scenario),
      ),
    ),
  );
}
