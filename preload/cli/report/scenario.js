// One scenario of `sluice bench`: charts, tables, failures. Open it to change what is shown of each.
const names_of = (report) => list(report, "allocators").map(({ name }) => name);
const entry_of = (object, allocator) => field(field(object, "allocators"), allocator);

// What stands in the place of a figure that an allocator does not have, and a class for its look.
function absence(scenario, allocator) {
  if (field(field(scenario, "failures"), allocator) !== undefined) return ["failed", "bad"];
  if (list(scenario, "not_applicable").includes(allocator)) return ["not applicable", "missing"];
  return [no_value, "missing"];
}
const absent_cell = (scenario, allocator) => {
  const [content, kind] = absence(scenario, allocator);
  return { content, kind, value: undefined };
};

// What all names of cases begin with, to the last "_" of it, says nothing beside the scenario's name; nor does the number
// of threads that all end in.
function without_prefix(all) {
  const point = /@\d+$/.exec(all[0] ?? "")?.[0] ?? "";
  const names = all.length > 1 && all.every((name) => name.endsWith(point)) ? all.map(without_point) : all;
  let shared = names[0] ?? "";
  while (!names.every((name) => name.startsWith(shared))) shared = shared.slice(0, -1);
  const length = names.length > 1 ? shared.lastIndexOf("_") + 1 : 0;
  return names.map((name) => name.slice(length));
}

function time_rows(report, scenario) {
  const names = names_of(report);
  const labels = without_prefix(list(scenario, "cases").map(({ name }) => String(name)));
  return list(scenario, "cases").map((timed, index) => ({
    label: labels[index],
    entries: names.map((allocator) => {
      const entry = entry_of(timed, allocator);
      const value = field(entry, "median");
      return {
        allocator,
        value,
        interval: field(entry, "interval") ?? null,
        text: is_number(value) ? nanoseconds_text(value) : absence(scenario, allocator)[0],
      };
    }),
  }));
}

// Cases of one length share an axis of time; those of very different ones are drawn as multiples of each one's fastest.
function time_figure(report, scenario) {
  const rows = time_rows(report, scenario).filter((row) => ends([row]).some((value) => value > 0));
  const least = ({ entries }) => Math.min(...entries.map(({ value }) => value).filter((value) => value > 0));
  const leasts = rows.map(least);
  if (Math.max(...leasts) <= 8 * Math.min(...leasts))
    return unit_bars(
      "Time",
      "Median per operation, with its interval. Less is better.",
      rows,
      time_units,
      (unit) => unit + " per operation",
    );
  const labelled = rows.map((row) => ({ ...row, label: [row.label, "1 is " + nanoseconds_text(least(row))] }));
  const relative = scaled_rows(labelled, least);
  return bar_figure({
    title: "Time",
    description: "Median per operation as a multiple of the fastest of each case (1); what exceeds 10 is cut off.",
    rows: relative,
    axis_title: "multiple of the fastest",
    tick: tick_text,
    reference: 1,
    longest: 10,
  });
}

const memory_of = (scenario, allocator) => field(field(scenario, "memory"), allocator);
const peak_of = (scenario, allocator) => field(field(memory_of(scenario, allocator), "peak_kib"), "median");
const has_best_peak = (scenario, allocator) =>
  field(field(memory_of(scenario, allocator), "peak_kib"), "best") === true;
const largest_of = (scenario, allocator) =>
  field(field(memory_of(scenario, allocator), "largest_process_kib"), "median");
const average_of = (scenario, allocator) => field(field(memory_of(scenario, allocator), "average_kib"), "median");
const rest_of = (scenario, allocator) => field(memory_of(scenario, allocator), "quiet_kib");

function memory_figure(report, scenario) {
  const row = (label, value_of) => ({
    label,
    entries: names_of(report).map((allocator) => {
      const value = value_of(scenario, allocator);
      return {
        allocator,
        value,
        interval: null,
        text: is_number(value) ? memory_text(value) : absence(scenario, allocator)[0],
      };
    }),
  });
  const all = [row("Peak", peak_of), row("Average", average_of), row("At rest", rest_of)];
  const rows = all.filter((each) => ends([each]).length > 0);
  if (rows.length === 0) return null;
  const has = (label) => rows.some((each) => each.label === label);
  const what = has("At rest")
    ? "The most that was resident, and what still was after a rest at the end."
    : has("Average")
      ? "The most that was resident, and what was on the average of the time."
      : "Peak resident memory.";
  return unit_bars("Memory", what + " Less is better.", rows, memory_units, (unit) => unit);
}

function time_table(report, scenario) {
  const names = names_of(report);
  const several = list(scenario, "cases").length > 1;
  const columns = [
    allocator_column,
    ...(several ? [{ title: "Case" }] : []),
    column("Median"),
    { title: "Interval", hint: "of the median" },
    { title: "Range", hint: "from the lowest to the highest sample" },
    column("To the best other", "ratio to the best of the other allocators"),
    column(`Ratio to ${report.baseline ?? "baseline"}`, "with its interval"),
    { title: `Against ${report.baseline ?? "baseline"}` },
  ];
  const rows = list(scenario, "cases").flatMap((timed) =>
    names.map((name) => {
      const entry = entry_of(timed, name);
      const value = field(entry, "median");
      const label = [allocator_cell(name), ...(several ? [String(timed.name)] : [])];
      if (!is_number(value)) return [...label, absent_cell(scenario, name), ...Array(5).fill(nothing)];
      const samples = list(entry, "samples").filter(is_number);
      const against = field(entry, "against_baseline");
      return [
        ...label,
        best_cell(value, nanoseconds_text, field(entry, "best") === true),
        interval_text(field(entry, "interval"), nanoseconds_text),
        samples.length
          ? `${nanoseconds_text(Math.min(...samples))} to ${nanoseconds_text(Math.max(...samples))}`
          : no_value,
        figure(field(entry, "ratio"), factor_text),
        ratio_cell(against),
        name === report.baseline
          ? { content: "baseline", value: 1 }
          : verdict_cell(against, field(entry, "verdict"), time_words),
      ];
    }),
  );
  return rows.length ? make_table("Time per operation", columns, rows) : null;
}

function memory_table(report, scenario) {
  const names = names_of(report);
  if (!names.some((name) => memory_of(scenario, name))) return null;
  const has_largest = names.some((name) => is_number(largest_of(scenario, name)));
  const has_average = names.some((name) => is_number(average_of(scenario, name)));
  const rows = names.map((name) => {
    const samples = list(field(memory_of(scenario, name), "peak_kib"), "samples").filter(is_number);
    const cell = (value_of, is_best) =>
      is_number(value_of(scenario, name))
        ? best_cell(value_of(scenario, name), memory_text, is_best)
        : absent_cell(scenario, name);
    return [
      allocator_cell(name),
      cell(peak_of, has_best_peak(scenario, name)),
      samples.length ? `${memory_text(Math.min(...samples))} to ${memory_text(Math.max(...samples))}` : no_value,
      ...(has_average ? [figure(average_of(scenario, name), memory_text)] : []),
      cell(rest_of, false), // one sample tells nobody the best
      ...(has_largest ? [figure(largest_of(scenario, name), memory_text)] : []),
    ];
  });
  return make_table(
    "Memory",
    [
      allocator_column,
      column("Peak"),
      { title: "Range", hint: "from the lowest to the highest sample" },
      ...(has_average ? [column("Average", "over the time that the program ran")] : []),
      column("At rest"),
      ...(has_largest ? [column("Largest process", "at its own peak")] : []),
    ],
    rows,
  );
}

// What the program counts of itself; the names are its own.
function own_figures_table(report, scenario) {
  const figures = names_of(report)
    .map((name) => [name, field(field(scenario, "figures"), name)])
    .filter(([, each]) => each);
  const titles = [...new Set(figures.flatMap(([, each]) => fields(each).map(([title]) => title)))];
  if (titles.length === 0) return null;
  const cell = (value) =>
    is_number(value) ? figure(value, number_text) : value === undefined ? nothing : String(value);
  return make_table(
    "The scenario's own figures",
    [allocator_column, ...titles.map((title) => column(title))],
    figures.map(([name, each]) => [allocator_cell(name), ...titles.map((title) => cell(field(each, title)))]),
  );
}

function scenario_facts(scenario) {
  const operations = list(scenario, "cases")
    .map(({ ops }) => ops)
    .filter(is_number);
  const facts = [
    scenario.kind === "program" ? "real program" : "built-in",
    field(scenario, "unit") && "operation: " + scenario.unit,
    is_number(scenario.threads) && counted(scenario.threads, "thread"),
    field(scenario, "variant") && "memory: " + scenario.variant,
    field(scenario, "component") && "component: " + scenario.component,
    operations.length && `${counted(Math.max(...operations), "operation")} a run`,
  ];
  return make(
    "ul",
    { class: "facts-line" },
    facts.filter(Boolean).map((fact) => make("li", {}, String(fact))),
  );
}

function scenario_section(report, scenario) {
  const pairs = names_of(report).map((name) => [name, field(field(scenario, "latency"), name)]);
  const latency = latency_parts(pairs, "Latencies by percentile");
  const timelines = names_of(report).map((name) => [name, field(memory_of(scenario, name), "timeline")]);
  const refused = list(scenario, "not_applicable").map(String);
  const failed = fields(scenario.failures).map(([name, reason]) => `${name}: ${reason}`);
  const tables = [
    time_table(report, scenario),
    memory_table(report, scenario),
    own_figures_table(report, scenario),
    ...latency.tables,
  ].filter(Boolean);
  return section(
    3,
    scenario.name,
    field(scenario, "summary") ? make("p", { class: "summary" }, scenario.summary) : null,
    scenario_facts(scenario),
    error_box("Failed", failed),
    refused.length
      ? note("", make("b", {}, "Not applicable"), ` under ${enumeration(refused)}: not measured there.`)
      : null,
    chart_grid(
      time_figure(report, scenario),
      memory_figure(report, scenario),
      timeline_figure(timelines),
      latency.charts,
    ),
    tables.length
      ? make(
          "details",
          { open: !has_charts },
          make("summary", {}, "Tables of ", make("b", {}, scenario.name)),
          ...tables,
        )
      : null,
  );
}
