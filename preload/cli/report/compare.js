// The report of `sluice compare`: one program under several allocators. Open it to change what that page shows.
const compare_metrics = new Map([
  ["wall_seconds", { title: "Wall time", text: seconds_text, words: time_words, units: time_units, factor: 1e9 }],
  [
    "load_seconds",
    { title: "Time of the load", text: seconds_text, words: time_words, units: time_units, factor: 1e9 },
  ],
  ["load_figure", { title: "The load's own figure", text: number_text, words: plain_words }],
  ["user_seconds", { title: "User time", text: seconds_text, words: time_words }],
  ["system_seconds", { title: "System time", text: seconds_text, words: time_words }],
  ["peak_rss_kib", { title: "Peak memory", text: memory_text, words: memory_words, units: memory_units, factor: 1 }],
  ["minor_faults", { title: "Page faults", text: count_text, words: plain_words }],
  ["major_faults", { title: "Page faults with input", text: count_text, words: plain_words }],
  ["context_switches", { title: "Context switches", text: count_text, words: plain_words }],
]);
const metric_called = (name) =>
  compare_metrics.get(name) ?? { title: name.replaceAll("_", " "), text: number_text, words: plain_words };
const metric_of = (allocator, name) => field(field(allocator, "metrics"), name);

function metric_names(report) {
  const present = new Set(list(report, "allocators").flatMap(({ metrics }) => fields(metrics).map(([name]) => name)));
  const known = [...compare_metrics.keys()].filter((name) => present.has(name));
  return [...known, ...[...present].filter((name) => !known.includes(name))];
}

function compare_ranking(report, name, title) {
  const { text, words } = metric_called(name);
  const entries = report.allocators.map((allocator) => {
    const metric = metric_of(allocator, name);
    const is_baseline = allocator.name === report.baseline;
    return {
      allocator: allocator.name,
      value: field(metric, "median"),
      text: is_number(field(metric, "median")) ? text(metric.median) : "not measured",
      failure: field(allocator, "failure"),
      kind: verdict_marks[field(metric, "verdict")]?.[1],
      remark: is_baseline ? "baseline" : verdict_text(field(metric, "verdict"), field(metric, "ratio"), words),
    };
  });
  return ranking(title, `Median of a run, and what may be said against ${report.baseline ?? "the baseline"}`, entries);
}

function compare_bars(report, name) {
  const { title, text, units, factor } = compare_metrics.get(name);
  const stretched = (interval) => interval && { low: interval.low * factor, high: interval.high * factor };
  const entries = report.allocators.map((allocator) => {
    const metric = metric_of(allocator, name);
    const median = field(metric, "median");
    return {
      allocator: allocator.name,
      value: is_number(median) ? median * factor : undefined,
      interval: stretched(field(metric, "interval")),
      text: is_number(median) ? text(median) : "failed",
    };
  });
  return unit_bars(
    title,
    "Median of the runs, with its interval. Less is better.",
    [{ label: title, entries }],
    units,
    (unit) => unit,
  );
}

// Every sample in its round: drift of the machine and odd runs show here.
function runs_figure(report, name) {
  const { title, units, factor, text } = compare_metrics.get(name);
  const samples = report.allocators.flatMap((allocator) => list(metric_of(allocator, name), "samples"));
  const most = Math.max(0, ...samples.filter(is_number)) * factor;
  const [scale, unit] = units.filter(([least]) => most >= least).at(-1) ?? units[0];
  const series = report.allocators.map((allocator) => ({
    allocator: allocator.name,
    points: list(metric_of(allocator, name), "samples")
      .map((value, index) => ({ x: index + 1, y: (value * factor) / scale, value }))
      .filter(({ value }) => is_number(value)),
  }));
  return line_figure({
    title: "Every run",
    description: `${title} of each run in its order. Less is better.`,
    series,
    marked: "only",
    x: () =>
      axis("round", (value) => (Number.isInteger(value) ? value : null), { type: "linear", ticks: { precision: 0 } }),
    y: () => axis(unit, tick_text, { type: "linear", beginAtZero: true }),
    label: ({ x, value }) => `${text(value)} in round ${x}`,
  });
}

function compare_figures_table(report, names) {
  const valid = report.allocators.filter((allocator) => !field(allocator, "failure"));
  const best = new Map(
    names.map((name) => [name, least_of(valid.map((allocator) => field(metric_of(allocator, name), "median")))]),
  );
  const cell = (allocator, name) => {
    const value = field(metric_of(allocator, name), "median");
    const can_win = compare_metrics.get(name)?.units && valid.includes(allocator);
    return best_cell(value, metric_called(name).text, can_win && value === best.get(name));
  };
  const outcome = (allocator) =>
    field(allocator, "failure")
      ? { content: make("span", { class: "bad" }, "failed: " + allocator.failure), value: allocator.failure }
      : "ran";
  const columns = [allocator_column, ...names.map((name) => column(metric_called(name).title)), { title: "Outcome" }];
  const rows = report.allocators.map((allocator) => [
    allocator_cell(allocator.name),
    ...names.map((name) => cell(allocator, name)),
    outcome(allocator),
  ]);
  return make_table("Medians of a run", columns, rows);
}

// One row for each allocator and figure.
function compare_ratio_table(report, names) {
  const rows = names.flatMap((name) =>
    report.allocators
      .filter((allocator) => metric_of(allocator, name))
      .map((allocator) => {
        const metric = metric_of(allocator, name);
        const { title, text, words } = metric_called(name);
        const samples = list(metric, "samples").filter(is_number);
        const range = samples.length ? `${text(Math.min(...samples))} to ${text(Math.max(...samples))}` : no_value;
        return [
          allocator_cell(allocator.name),
          title,
          figure(field(metric, "median"), text),
          interval_text(field(metric, "interval"), text),
          range,
          samples.length,
          ratio_cell(field(metric, "ratio")),
          allocator.name === report.baseline
            ? { content: "baseline", value: 1 }
            : verdict_cell(field(metric, "ratio"), field(metric, "verdict"), words),
        ];
      }),
  );
  const columns = [
    allocator_column,
    { title: "Figure" },
    column("Median"),
    { title: "Interval", hint: "of the median" },
    { title: "Range", hint: "from the lowest to the highest sample" },
    column("Runs"),
    column(`Ratio to ${report.baseline ?? "baseline"}`, "with its interval"),
    { title: `Against ${report.baseline ?? "baseline"}` },
  ];
  return make_table("Every figure, its spread and what may be said of it", columns, rows);
}

function compare_errors(report) {
  const failures = report.allocators
    .filter((allocator) => field(allocator, "failure"))
    .map((allocator) => `${allocator.name}: ${allocator.failure}`);
  return [...failures, ...list(report, "differences").map(String)];
}

const pairs_of = (report, name) => report.allocators.map((allocator) => [allocator.name, field(allocator, name)]);

function compare_subtitle(report) {
  const runs = `${counted(field(report, "rounds") ?? 0, "run")} of each`;
  const warmup = `after ${field(report, "warmup") ?? 0} to warm up`;
  const compared = field(report, "output_compared");
  const all_the_same = compared === true && compare_errors(report).length === 0 && report.allocators.length > 1;
  return [
    `One program under ${counted(report.allocators.length, "allocator")}: ${runs}, ${warmup}, in turn.`,
    all_the_same ? "All did the same: exit status and output were compared." : "",
    compared === false ? "Their output was not compared." : "",
  ].join(" ");
}

function compare_page(report) {
  const names = metric_names(report);
  const drawn = names.filter((name) => compare_metrics.get(name)?.units);
  const time = drawn.find((name) => name !== "peak_rss_kib");
  const latency = latency_parts(pairs_of(report, "latency"), "Latencies by percentile");
  return {
    title: command_text(list(report, "command")),
    is_command: true,
    kicker: "sluice compare",
    subtitle: compare_subtitle(report),
    partial: "It was interrupted: the figures are of the runs that were made until then.",
    parts: [
      error_box("Errors", compare_errors(report)),
      ...list(report, "remarks").map((remark) => note("", make("b", {}, "Note: "), String(remark))),
      section(
        2,
        "Summary",
        cards(
          time ? compare_ranking(report, time, "Fastest first") : null,
          compare_ranking(report, "peak_rss_kib", "Least memory first"),
        ),
        chart_grid(drawn.map((name) => compare_bars(report, name))),
      ),
      section(
        2,
        "In the course of it",
        chart_grid(timeline_figure(pairs_of(report, "timeline")), time ? runs_figure(report, time) : null),
      ),
      latency.tables.length ? section(2, "Latency", chart_grid(latency.charts), ...latency.tables) : null,
      section(2, "Figures", compare_figures_table(report, names), compare_ratio_table(report, names)),
      reproduce_section(report),
      machine_section(report),
      reading_section(report, compare_reading),
    ],
  };
}
