// The summary: who did best, as lists, and what every report says of its machine and of itself. Open
// it to change the first and the last screen of a report.

// entries: { allocator, value, text, remark, kind, failure, place }, the best first: those with the least value, or with
// the most. Those that failed come last. Places are shown where somebody is surely better than somebody else, and
// those between whom there is no significant difference may share one.
function ranking(title, hint, entries, better = "less") {
  const sign = better === "more" ? -1 : 1;
  const valid = entries
    .filter(({ value, failure }) => is_number(value) && !failure)
    .sort((left, right) => (left.place ?? 0) - (right.place ?? 0) || sign * (left.value - right.value));
  if (valid.length === 0) return null;
  const failed = entries.filter((entry) => !valid.includes(entry));
  const has_places = valid.every(({ place }) => is_number(place)) && valid.some(({ place }) => place > 1);
  const item = ({ allocator, text, remark, kind, place }) =>
    make(
      "li",
      {},
      has_places ? make("span", { class: "place" }, place + ".") : null,
      allocator_label(allocator),
      make("span", { class: "value" }, text),
      remark ? make("span", { class: "remark " + (kind ?? "") }, remark) : null,
    );
  const loser = ({ allocator, failure, text }) =>
    make(
      "li",
      { class: "failed" },
      allocator_label(allocator),
      make("span", { class: "remark bad" }, failure ? "failed: " + failure : text),
    );
  return make(
    "div",
    { class: "card" },
    make("h3", {}, title),
    make("p", { class: "muted" }, hint),
    make("ul", { class: "ranking" }, valid.map(item)),
    failed.length ? make("ul", { class: "ranking" }, failed.map(loser)) : null,
  );
}

const cards = (...all) => make("div", { class: "cards" }, ...all);
const chart_grid = (...charts) => {
  const drawn = charts.flat().filter(Boolean);
  return drawn.length ? make("div", { class: "charts" }, drawn) : null;
};

// Errors stand before everything else, and in one box.
function error_box(title, lines) {
  if (lines.length === 0) return null;
  return make(
    "div",
    { class: "note bad", role: "note" },
    make("b", {}, title),
    make(
      "ul",
      {},
      lines.map((line) => make("li", {}, line)),
    ),
  );
}

function machine_section(report) {
  const machine = field(report, "machine");
  const processors = field(machine, "processors");
  return section(
    2,
    "Machine and versions",
    description_list([
      [
        "Processor",
        is_number(processors)
          ? `${processors} × ${field(machine, "processor") ?? "unknown"}`
          : field(machine, "processor"),
      ],
      ["Memory", is_number(field(machine, "memory_mib")) ? memory_text(machine.memory_mib * 1024) : null],
      ["System", field(machine, "system")],
      ["Transparent huge pages", field(machine, "transparent_huge_pages")],
      ["Compiler", field(report, "compiler")],
      ["Sluice", field(report, "sluice_version")],
      [
        "Date",
        field(report, "date") === undefined ? null : make("time", { datetime: report.date }, date_text(report.date)),
      ],
    ]),
    allocator_table(report),
  );
}

function allocator_table(report) {
  const versions = list(report, "allocators").some((allocator) => field(allocator, "version"));
  const rows = list(report, "allocators").map((allocator) => [
    {
      content: [
        allocator_label(allocator.name),
        allocator.name === field(report, "baseline") ? make("span", { class: "tag" }, "baseline") : null,
      ],
      value: allocator.name,
    },
    ...(versions ? [field(allocator, "version") ?? no_value] : []),
    field(allocator, "library") ? make("code", {}, allocator.library) : "the C library's own",
  ]);
  return make_table(
    "Allocators",
    [allocator_column, ...(versions ? [{ title: "Version" }] : []), { title: "Library" }],
    rows,
  );
}

function reproduce_section(report) {
  const words = list(report, "reproduce");
  const save = () => {
    const blob = new Blob([document.getElementById("document").textContent], { type: "application/json" });
    const link = make("a", { href: URL.createObjectURL(blob), download: "sluice-report.json" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  return section(
    2,
    "Reproduce",
    words.length
      ? command_box(command_text(words))
      : make("p", { class: "muted" }, "The document does not say by which command it was made."),
    make(
      "p",
      {},
      "All samples stand in this file. ",
      make("button", { type: "button", class: "small", click: save }, "Save them as JSON"),
    ),
  );
}
