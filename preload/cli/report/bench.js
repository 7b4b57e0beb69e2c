// The report of `sluice bench`: many scenarios under several allocators. Open it to change its summary.

// The geometric means of the ratios to the best other, of the built-in scenarios as the document has them and of the
// real programs, as [what they are of, by allocator]. There is none for an allocator that lacks one of the ratios.
function means_of(report, name, ratios_of) {
  const programs = list(report, "scenarios").filter((scenario) => field(scenario, "kind") === "program");
  const mean = (allocator) => {
    const ratios = programs.flatMap((scenario) => ratios_of(scenario, allocator));
    const logarithms = ratios.map((ratio) => (ratio > 0 ? Math.log(ratio) : NaN));
    return Math.exp(logarithms.reduce((sum, value) => sum + value, 0) / ratios.length);
  };
  const built_in = new Map(
    names_of(report).map((each) => [each, field(field(field(report, "geometric_mean"), name), each)]),
  );
  const real = new Map(names_of(report).map((each) => [each, mean(each)]));
  return [
    ["built-in scenarios", built_in],
    ["real programs", real],
  ].filter(([, means]) => [...means.values()].some(is_number));
}
const time_ratios = (scenario, allocator) =>
  list(scenario, "cases").map((timed) => field(entry_of(timed, allocator), "ratio"));
const peak_ratios = (scenario, allocator) => [field(field(memory_of(scenario, allocator), "peak_kib"), "ratio")];

const mean_text = (mean) => (is_number(mean) ? factor_text(mean) : "no mean");

function mean_remark(mean, words) {
  if (!is_number(mean)) return null;
  if (Math.abs(mean - 1) < 0.005) return "like the best other";
  return verdict_text(mean < 1 ? "less" : "more", { value: mean }, words);
}

const mean_ranking = (title, means, words) =>
  ranking(
    title,
    "Geometric mean of the ratios to the best of the others, the lowest first",
    [...means].map(([allocator, mean]) => ({
      allocator,
      value: mean,
      text: mean_text(mean),
      remark: mean_remark(mean, words),
    })),
  );

const mean_figure = (title, means) =>
  bar_figure({
    title,
    description: "Geometric mean of the ratios to the best of the others. Below 1: better than all of them.",
    rows: [{ entries: [...means].map(([allocator, value]) => ({ allocator, value, text: mean_text(value) })) }],
    axis_title: "ratio to the best other",
    tick: tick_text,
    reference: 1,
  });

function mean_parts(report) {
  const times = means_of(report, "time", time_ratios);
  const memories = means_of(report, "memory", peak_ratios);
  const pairs = times.flatMap(([what, means]) => [
    ["Time", "Time", what, means, time_words],
    ["Peak memory", "Peak memory", what, new Map(memories).get(what), memory_words],
  ]);
  const known = pairs.filter(([, , , means]) => means);
  return {
    rankings: cards(known.map(([title, , what, means, words]) => mean_ranking(`${title}: ${what}`, means, words))),
    figures: known.map(([, title, what, means]) => mean_figure(`${title}, ${what}`, means)),
  };
}

// How often each allocator needed less time than the baseline, and how often more.
const outcomes = [
  ["less", "faster"],
  ["no difference", "no sure difference"],
  ["more", "slower"],
  ["unknown", "too little to tell"],
];
function tally(report) {
  const counts = new Map(
    names_of(report)
      .filter((name) => name !== report.baseline)
      .map((name) => [name, new Map()]),
  );
  const add = (name, outcome) => counts.get(name)?.set(outcome, (counts.get(name).get(outcome) ?? 0) + 1);
  for (const scenario of list(report, "scenarios")) {
    for (const timed of list(scenario, "cases"))
      for (const name of counts.keys())
        if (entry_of(timed, name)) add(name, field(entry_of(timed, name), "verdict") ?? "unknown");
    for (const [name] of fields(scenario.failures)) add(name, "failed");
    for (const name of list(scenario, "not_applicable")) add(name, "refused");
  }
  return counts;
}

// In how many cases each is surely faster than each of the others.
function best_counts(report) {
  const names = names_of(report);
  const counts = new Map(names.map((name) => [name, 0]));
  for (const timed of list(report, "scenarios").flatMap((scenario) => list(scenario, "cases")))
    for (const name of names)
      if (field(entry_of(timed, name), "best") === true) counts.set(name, counts.get(name) + 1);
  return counts;
}

function tally_table(report) {
  const counts = tally(report);
  if (counts.size === 0) return null;
  const best = best_counts(report);
  const kinds = [...outcomes, ["failed", "scenarios failed"], ["refused", "not applicable"]];
  const columns = [allocator_column, column("surely fastest of all"), ...kinds.map(([, title]) => column(title))];
  const cell = (of_name, kind) => figure(of_name.get(kind) ?? 0, count_text, { less: "less", more: "more" }[kind]);
  const rows = [...counts].map(([name, of_name]) => [
    allocator_cell(name),
    figure(best.get(name), count_text),
    ...kinds.map(([kind]) => cell(of_name, kind)),
  ]);
  if (best.has(report.baseline))
    rows.push([
      allocator_cell(report.baseline),
      figure(best.get(report.baseline), count_text),
      { content: "baseline" },
      ...Array(kinds.length - 1).fill(nothing),
    ]);
  return make_table(`Number of cases, by time against ${report.baseline ?? "the baseline"}`, columns, rows);
}

function tally_figure(report) {
  const counts = tally(report);
  const told = outcomes.filter(([kind]) => [...counts.values()].some((of_name) => of_name.get(kind)));
  if (told.length === 0) return null;
  const configuration = () => {
    const colours = {
      less: colour("less"),
      more: colour("more"),
      "no difference": colour("same"),
      unknown: colour("grid"),
    };
    const datasets = told.map(([kind, title]) => ({
      label: title,
      data: [...counts.values()].map((of_name) => of_name.get(kind) ?? 0),
      backgroundColor: colours[kind],
      borderColor: colour("surface"),
      borderWidth: 1,
      pointStyle: "rect",
    }));
    const options = base_options(({ dataset, raw, label }) => `${label}: ${counted(raw, "case")} ${dataset.label}`);
    Object.assign(options, {
      indexAxis: "y",
      scales: {
        x: axis("cases", tick_text, { stacked: true, ticks: { precision: 0 } }),
        y: name_axis({ stacked: true }),
      },
    });
    return { type: "bar", data: { labels: [...counts.keys()], datasets }, options };
  };
  return chart_figure(
    `Against ${report.baseline ?? "the baseline"}`,
    "In how many cases each allocator was surely faster, surely slower, or neither.",
    Math.max(counts.size * 34 + 104, 250),
    configuration,
  );
}

function bench_errors(report) {
  const scenarios = list(report, "scenarios");
  return scenarios.flatMap((scenario) =>
    fields(scenario.failures).map(([name, reason]) => `${scenario.name} under ${name}: ${reason}`),
  );
}

// Each scenario counts once, however many numbers of threads it ran with.
function scenarios_text(report) {
  const names = list(report, "scenarios").map(({ name }) => String(name));
  const threads = list(report, "threads");
  if (threads.length === 0) return counted(names.length, "scenario");
  return `${counted(new Set(names.map(without_point)).size, "scenario")} with ${enumeration(threads.map(String))} threads`;
}

function bench_page(report) {
  const scenarios = list(report, "scenarios");
  const sections = new Map(scenarios.map((scenario) => [scenario, scenario_section(report, scenario)]));
  const { bar, table } = cases_parts(report, sections);
  const rounds = is_number(field(report, "rounds")) ? `, ${counted(report.rounds, "round")} in turn` : "";
  const means = mean_parts(report);
  return {
    title: `${scenarios_text(report)} × ${counted(report.allocators.length, "allocator")}`,
    kicker: "sluice bench",
    subtitle: `Time and memory under ${enumeration(names_of(report))}${rounds}.`,
    partial: "It was interrupted: some rounds or scenarios are missing.",
    parts: [
      error_box("Failures", bench_errors(report)),
      section(2, "Summary", means.rankings, chart_grid(means.figures, tally_figure(report)), tally_table(report)),
      speed_up_section(report),
      scenarios.length
        ? make("div", {}, bar, section(2, "All cases", ...table), section(2, "Scenarios", ...sections.values()))
        : null,
      reproduce_section(report),
      machine_section(report),
      reading_section(report, bench_reading(report)),
    ],
  };
}
