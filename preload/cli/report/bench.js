// The report of `sluice bench`: many scenarios under several allocators. Open it to change its summary.

function mean_ranking(report, name, title, words) {
  const means = field(field(report, "geometric_mean"), name);
  const remark = (mean) => (Math.abs(mean - 1) < 0.005 ? "as the best other"
    : verdict_text(mean < 1 ? "less" : "more", { value: mean }, words) + (mean < 1 ? " than the best other" : mean >= 2 ? " as the best other" : " than the best other"));
  const entries = names_of(report).map((allocator) => {
    const mean = field(means, allocator);
    return { allocator, value: mean, text: is_number(mean) ? factor_text(mean) : "no mean", remark: is_number(mean) ? remark(mean) : null };
  });
  return ranking(title, "Geometric mean of the ratios to the best of the others", entries);
}

function mean_figure(report, name, title) {
  const means = field(field(report, "geometric_mean"), name);
  const entries = names_of(report).map((allocator) => {
    const value = field(means, allocator);
    return { allocator, value, interval: null, text: is_number(value) ? factor_text(value) : "no mean" };
  });
  return bar_figure({ title, description: "Geometric mean of the ratios to the best of the others. Below 1: better than all of them.",
                      rows: [{ label: title, entries }], axis_title: "ratio to the best other", tick: tick_text });
}

// How often each allocator needed less time than the baseline, and how often more.
const outcomes = [["less", "faster"], ["no difference", "no sure difference"], ["more", "slower"], ["unknown", "too little to tell"]];
function tally(report) {
  const counts = new Map(names_of(report).filter((name) => name !== report.baseline).map((name) => [name, new Map()]));
  const add = (name, outcome) => counts.get(name)?.set(outcome, (counts.get(name).get(outcome) ?? 0) + 1);
  for (const scenario of list(report, "scenarios")) {
    for (const timed of list(scenario, "cases"))
      for (const name of counts.keys()) if (entry_of(timed, name)) add(name, field(entry_of(timed, name), "verdict") ?? "unknown");
    for (const [name] of fields(scenario.failures)) add(name, "failed");
    for (const name of list(scenario, "not_applicable")) add(name, "refused");
  }
  return counts;
}

function best_counts(report) {
  const names = names_of(report);
  const counts = new Map(names.map((name) => [name, 0]));
  for (const timed of list(report, "scenarios").flatMap((scenario) => list(scenario, "cases")))
    for (const name of names)
      if (field(entry_of(timed, name), "median") === least_time(names, timed)) counts.set(name, counts.get(name) + 1);
  return counts;
}

function tally_table(report) {
  const counts = tally(report);
  if (counts.size === 0) return null;
  const best = best_counts(report);
  const kinds = [...outcomes, ["failed", "scenarios failed"], ["refused", "not applicable"]];
  const columns = [allocator_column, column("lowest median"), ...kinds.map(([, title]) => column(title))];
  const cell = (of_name, kind) => figure(of_name.get(kind) ?? 0, count_text, { less: "less", more: "more" }[kind]);
  const rows = [...counts].map(([name, of_name]) =>
    [allocator_cell(name), figure(best.get(name), count_text), ...kinds.map(([kind]) => cell(of_name, kind))]);
  if (best.has(report.baseline))
    rows.push([allocator_cell(report.baseline), figure(best.get(report.baseline), count_text), { content: "baseline" }, ...Array(kinds.length - 1).fill(nothing)]);
  return make_table(`Number of cases, by time against ${report.baseline ?? "the baseline"}`, columns, rows);
}

function tally_figure(report) {
  const counts = tally(report);
  const told = outcomes.filter(([kind]) => [...counts.values()].some((of_name) => of_name.get(kind)));
  if (told.length === 0) return null;
  const configuration = () => {
    const colours = { less: colour("less"), more: colour("more"), "no difference": colour("same"), unknown: colour("grid") };
    const datasets = told.map(([kind, title]) => ({ label: title, data: [...counts.values()].map((of_name) => of_name.get(kind) ?? 0),
                                                    backgroundColor: colours[kind], borderColor: colour("surface"), borderWidth: 1, pointStyle: "rect" }));
    const options = base_options(({ dataset, raw, label }) => `${label}: ${counted(raw, "case")} ${dataset.label}`);
    Object.assign(options, { indexAxis: "y", scales: {
      x: axis("cases", tick_text, { stacked: true, ticks: { precision: 0 } }),
      y: name_axis({ stacked: true }) } });
    return { type: "bar", data: { labels: [...counts.keys()], datasets }, options };
  };
  return chart_figure(`Against ${report.baseline ?? "the baseline"}`, "In how many cases each allocator was surely faster, surely slower, or neither.",
                      Math.max(counts.size * 34 + 104, 250), configuration);
}

function bench_errors(report) {
  const scenarios = list(report, "scenarios");
  return scenarios.flatMap((scenario) => fields(scenario.failures).map(([name, reason]) => `${scenario.name} under ${name}: ${reason}`));
}

const bench_reading = (report) => [
  "A time is in nanoseconds per operation; what an operation is stands beside each scenario. Samples of the allocators are taken in turn, so that what slows the machine down meets all of them.",
  "To the best other is the allocator's median divided by the lowest median among the other allocators: below 1 it is the fastest. The geometric means are those of this ratio over the cases in which each object is allocated and freed by itself; there is none for an allocator that lacks one of them.",
  `Peak is the most memory that was resident at once. At rest is what still was when the program had freed its memory and waited${is_number(field(report, "quiet_seconds")) ? " for " + seconds_text(report.quiet_seconds) : ""}.`,
];

function bench_page(report) {
  const scenarios = list(report, "scenarios");
  const sections = new Map(scenarios.map((scenario) => [scenario, scenario_section(report, scenario)]));
  const { bar, table } = cases_parts(report, sections);
  const rounds = is_number(field(report, "rounds")) ? `, ${counted(report.rounds, "round")} in turn` : "";
  const means = [["time", "Time", time_words, "Fastest first"], ["memory", "Peak memory", memory_words, "Least memory first"]];
  return {
    title: `${counted(scenarios.length, "scenario")} × ${counted(report.allocators.length, "allocator")}`,
    kicker: "sluice bench",
    subtitle: `Time and memory under ${enumeration(names_of(report))}${rounds}.`,
    partial: "It was interrupted: some rounds or scenarios are missing.",
    parts: [
      error_box("Failures", bench_errors(report)),
      section(2, "Summary", cards(means.map(([name, , words, title]) => mean_ranking(report, name, title, words))),
              chart_grid(means.map(([name, title]) => mean_figure(report, name, title)), tally_figure(report)), tally_table(report)),
      scenarios.length
        ? make("div", {}, bar, section(2, "All cases", ...table), section(2, "Scenarios", ...sections.values())) : null,
      reproduce_section(report),
      machine_section(report),
      reading_section(report, ...bench_reading(report)),
    ],
  };
}
