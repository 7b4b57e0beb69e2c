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
  ["peak_all_kib", { title: "Peak memory", text: memory_text, words: memory_words, units: memory_units, factor: 1 }],
  [
    "mean_all_kib",
    { title: "Average memory", text: memory_text, words: memory_words, units: memory_units, factor: 1 },
  ],
  [
    "peak_rss_kib",
    { title: "Largest process", text: memory_text, words: memory_words, units: memory_units, factor: 1 },
  ],
  ["minor_faults", { title: "Page faults", text: count_text, words: plain_words }],
  ["major_faults", { title: "Major page faults", text: count_text, words: plain_words }],
  ["context_switches", { title: "Context switches", text: count_text, words: plain_words }],
]);
const described_metric = (report, name) => list(report, "metrics").find((metric) => field(metric, "name") === name);
// The figures of the program's own, or of its load, say what they are called and what is better of them.
function metric_called(report, name) {
  const described = described_metric(report, name);
  if (compare_metrics.has(name) && !described?.expression) return compare_metrics.get(name);
  const title = field(described, "title") ?? name.replaceAll("_", " ");
  return { title: String(title), text: number_text, words: own_words[field(described, "better")] ?? own_words.unknown };
}
const is_own = (report, name) => field(described_metric(report, name), "expression") !== undefined;
const metric_of = (allocator, name) => field(field(allocator, "metrics"), name);

function metric_names(report) {
  const present = new Set(list(report, "allocators").flatMap(({ metrics }) => fields(metrics).map(([name]) => name)));
  const own = list(report, "metrics")
    .map(({ name }) => name)
    .filter((name) => present.has(name) && is_own(report, name));
  const known = [...compare_metrics.keys()].filter((name) => present.has(name) && !own.includes(name));
  return [...own, ...known, ...[...present].filter((name) => !known.includes(name) && !own.includes(name))];
}

// By which the allocators are ranked: what the document says, or the time.
function deciding_metric(report, names) {
  const said = list(report, "metrics").find((metric) => field(metric, "decides") === true);
  if (said && names.includes(said.name)) return said.name;
  return names.find((name) => name === "wall_seconds" || name === "load_seconds");
}

function compare_ranking(report, name, title) {
  const { text, words } = metric_called(report, name);
  const entries = report.allocators.map((allocator) => {
    const metric = metric_of(allocator, name);
    const is_baseline = allocator.name === report.baseline;
    return {
      allocator: allocator.name,
      value: field(metric, "median"),
      text: is_number(field(metric, "median")) ? text(metric.median) : "not measured",
      failure: field(allocator, "failure"),
      place: field(metric, "place"),
      kind: field(metric, "verdict") === undefined ? "" : verdict_kind(metric.verdict, words),
      remark: is_baseline ? "baseline" : verdict_text(field(metric, "verdict"), field(metric, "ratio"), words),
    };
  });
  const hint = `Median of a run, and what may be said against ${report.baseline ?? "the baseline"}`;
  return ranking(ranking_title(title, entries), hint, entries, words.better);
}

// A title that nobody is called the best in, where nobody is.
function ranking_title({ first, none }, entries) {
  const places = entries.map(({ place }) => place).filter(is_number);
  if (places.length < 2) return none;
  return places.some((place) => place > 1) ? first : `${none}: no significant difference`;
}
const time_title = { first: "Fastest first", none: "Time" };
const memory_title = { first: "Least memory first", none: "Memory" };
const own_title = (title) => ({ first: `Best by ${title} first`, none: title });

const better_text = { less: " Less is better.", more: " More is better." };

function compare_bars(report, name) {
  const { title, text, words, units = [[1, ""]], factor = 1 } = metric_called(report, name);
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
    "Median of the runs, with its interval." + (better_text[words.better] ?? ""),
    [{ label: title, entries }],
    units,
    (unit) => unit || title,
  );
}

// Every sample in its round: drift of the machine and odd runs show here.
function runs_figure(report, name) {
  const { title, text, words, units = [[1, ""]], factor = 1 } = metric_called(report, name);
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
    description: `${title} of each run in its order.${better_text[words.better] ?? ""}`,
    series,
    marked: "only",
    x: () =>
      axis("round", (value) => (Number.isInteger(value) ? value : null), { type: "linear", ticks: { precision: 0 } }),
    y: () => axis(unit || title, tick_text, { type: "linear", beginAtZero: true }),
    label: ({ x, value }) => `${text(value)} in round ${x}`,
  });
}

function compare_figures_table(report, names) {
  const valid = report.allocators.filter((allocator) => !field(allocator, "failure"));
  const cell = (allocator, name) => {
    const metric = metric_of(allocator, name);
    const is_best = field(metric, "best") === true && valid.includes(allocator);
    return best_cell(field(metric, "median"), metric_called(report, name).text, is_best);
  };
  const outcome = (allocator) =>
    field(allocator, "failure")
      ? { content: make("span", { class: "bad" }, "failed: " + allocator.failure), value: allocator.failure }
      : "ran";
  const columns = [allocator_column, ...names.map((name) => column(metric_called(report, name).title)), { title: "Outcome" }];
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
        const { title, text, words } = metric_called(report, name);
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
  const drawn = names.filter((name) => compare_metrics.get(name)?.units || is_own(report, name));
  const deciding = deciding_metric(report, names);
  const memory = names.includes("peak_all_kib") ? "peak_all_kib" : "peak_rss_kib";
  const title = is_own(report, deciding) ? own_title(metric_called(report, deciding).title) : time_title;
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
          deciding ? compare_ranking(report, deciding, title) : null,
          compare_ranking(
            report,
            memory,
            memory === "peak_all_kib" ? memory_title : { first: "Least memory of the largest process first", none: "Memory of the largest process" },
          ),
        ),
        list(report, "summary").map((line) => make("p", { class: "said" }, String(line))),
        chart_grid(drawn.map((name) => compare_bars(report, name))),
      ),
      section(
        2,
        "In the course of it",
        chart_grid(timeline_figure(pairs_of(report, "timeline")), deciding ? runs_figure(report, deciding) : null),
      ),
      latency.tables.length ? section(2, "Latency", chart_grid(latency.charts), ...latency.tables) : null,
      section(2, "Figures", compare_figures_table(report, names), compare_ratio_table(report, names)),
      reproduce_section(report),
      machine_section(report),
      reading_section(report, compare_reading(report)),
    ],
  };
}
