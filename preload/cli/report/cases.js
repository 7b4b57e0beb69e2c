// The table of all cases under all allocators, what it shows of them, and the filter that it shares with the sections
// of the scenarios. Open it to add a view or a filter.

// title, what a cell shows, and whether there is a row for each case or one for each scenario.
function views_of(report) {
  const baseline = report.baseline ?? "baseline";
  const of_case = (make_cell) => (scenario, timed, name) => {
    const entry = entry_of(timed, name);
    return is_number(field(entry, "median")) ? make_cell(entry, name) : absent_cell(scenario, name);
  };
  const of_scenario = (value_of, is_best) => (scenario, timed, name) => {
    const value = value_of(scenario, name);
    return is_number(value) ? best_cell(value, memory_text, is_best(scenario, name)) : absent_cell(scenario, name);
  };
  return [
    {
      title: "Time per operation",
      cell: of_case((entry) => best_cell(entry.median, nanoseconds_text, field(entry, "best") === true)),
    },
    {
      title: `Time against ${baseline}`,
      cell: of_case((entry, name) =>
        name === report.baseline
          ? { content: "baseline", value: 1, kind: "missing" }
          : verdict_cell(field(entry, "against_baseline"), field(entry, "verdict"), time_words),
      ),
    },
    {
      title: "Time to the best other",
      cell: of_case((entry) =>
        is_number(entry.ratio)
          ? { content: factor_text(entry.ratio), value: entry.ratio, kind: field(entry, "best") === true ? "best" : "" }
          : nothing,
      ),
    },
    { title: "Peak memory", by_scenario: true, cell: of_scenario(peak_of, has_best_peak) },
    { title: "Memory at rest", by_scenario: true, cell: of_scenario(rest_of, () => false) },
  ];
}

// The scenario's name, and the case's where there are several.
function row_labels(scenario, by_scenario) {
  const names = list(scenario, "cases").map(({ name }) => String(name));
  if (by_scenario || names.length < 2) return [String(scenario.name)];
  return without_prefix(names).map((name) => `${scenario.name}: ${name}`);
}
const breakable = (text) => text.split(/(?<=_)/).flatMap((part) => [part, make("wbr")]);

function view_table(report, view, links) {
  const names = names_of(report);
  const rows = [];
  const owners = [];
  for (const scenario of list(report, "scenarios")) {
    const cases = list(scenario, "cases");
    for (const [index, text] of row_labels(scenario, view.by_scenario).entries()) {
      const timed = cases[index];
      rows.push([
        { content: make("a", { href: "#" + links.get(scenario) }, ...breakable(text)), value: text },
        ...names.map((name) => view.cell(scenario, timed, name)),
      ]);
      owners.push(scenario);
    }
  }
  const columns = [
    { title: view.by_scenario ? "Scenario" : "Case" },
    ...names.map((name) => ({ ...column(name), label: allocator_label(name) })),
  ];
  const box = make_table(view.title, columns, rows, { class: "cases" });
  [...box.querySelector("tbody").rows].forEach((row, index) => (row.scenario = owners[index]));
  return box;
}

const searched_text = (scenario) =>
  [
    scenario.name,
    scenario.group,
    scenario.summary,
    scenario.variant,
    scenario.component,
    ...list(scenario, "cases").map(({ name }) => name),
  ]
    .filter(Boolean)
    .join(" ")
    .toLowerCase();

// The words must all occur.
function matches(scenario, words, kind) {
  if (kind === "failed" ? fields(scenario.failures).length === 0 : kind && field(scenario, "kind") !== kind)
    return false;
  const text = searched_text(scenario);
  return words.every((word) => text.includes(word));
}

const option = (value, text) => make("option", { value }, text);
const control = (label, element) => make("label", {}, make("span", {}, label), element);

// sections: Map of a scenario to its section. Returns: the filter of all, and the elements of the table of cases.
function cases_parts(report, sections) {
  const scenarios = list(report, "scenarios");
  const links = new Map([...sections].map(([scenario, element]) => [scenario, element.id]));
  const views = views_of(report);
  const search = make("input", {
    type: "search",
    id: "search",
    placeholder: "name, group, summary",
    input: () => apply(),
  });
  const kind = make(
    "select",
    { id: "kind", change: () => apply() },
    option("", "all"),
    option("built-in", "built-in scenarios"),
    option("program", "real programs"),
    option("failed", "with failures"),
  );
  const show = make(
    "select",
    { id: "view", change: () => fill() },
    views.map(({ title }, index) => option(index, title)),
  );
  const jump = make("select", {
    id: "jump",
    change: () => {
      if (jump.value) location.hash = jump.value;
      jump.value = "";
    },
  });
  const status = make("p", { class: "muted", role: "status" });
  const place = make("div", {});
  const wanted = () =>
    new Set(
      scenarios.filter((scenario) =>
        matches(scenario, search.value.toLowerCase().split(/\s+/).filter(Boolean), kind.value),
      ),
    );
  const apply = () => {
    const chosen = wanted();
    for (const [scenario, element] of sections) element.hidden = !chosen.has(scenario);
    for (const row of place.querySelectorAll("tbody tr")) row.hidden = !chosen.has(row.scenario);
    jump.replaceChildren(
      option("", "choose …"),
      ...[...chosen].map((scenario) => option(links.get(scenario), scenario.name)),
    );
    status.textContent = `${chosen.size} of ${counted(scenarios.length, "scenario")} shown`;
  };
  const fill = () => {
    place.replaceChildren(view_table(report, views[show.value], links));
    apply();
  };
  fill();
  const bar = make(
    "div",
    { class: "filter", role: "search" },
    control("Search", search),
    control("Kind", kind),
    control("Go to", jump),
    status,
  );
  return { bar, table: [make("div", { class: "filter" }, control("Show", show)), place] };
}
