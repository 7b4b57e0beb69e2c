// The report of `sluice profile`: who allocates in a program. Open it to change what that page shows; flame.js and
// heap_timeline.js draw.
const byte_units = [
  [1, "B"],
  [1024, "KiB"],
  [1024 ** 2, "MiB"],
  [1024 ** 3, "GiB"],
  [1024 ** 4, "TiB"],
];
const bytes_text = (value) => scaled(value, byte_units);
const milliseconds_text = (value) => (is_number(value) ? scaled(value * 1e6, [[1e6, "ms"], [1e9, "s"]]) : no_value);
const blocks_text = (value) => counted(value, "block");
const part_text = (part, whole) =>
  is_number(part) && whole > 0 ? ((100 * part) / whole).toFixed(1) + unit_space + "%" : no_value;

const flame_measures = [
  { key: "inuse", title: "alive at the end", text: bytes_text },
  { key: "peak", title: "alive at the peak", text: bytes_text },
  { key: "alloc", title: "allocated", text: bytes_text },
  { key: "short_lived", title: "short-lived", text: blocks_text },
];

const total_of = (report, name) => field(field(report, "total"), name);
const error_text = (error) =>
  is_number(error) ? (error > 9.99 ? ">" + unit_space + "999" : (100 * error).toFixed(0)) + unit_space + "%" : no_value;

function profile_facts(report) {
  const rate = field(report, "rate");
  const in_blocks = (name) =>
    is_number(total_of(report, name))
      ? `${bytes_text(total_of(report, name))} in ${blocks_text(total_of(report, name + "_blocks"))}`
      : undefined;
  const errors = field(report, "errors");
  return description_list([
    ["Process", field(report, "pid") ? String(report.pid) : undefined],
    ["Processes", report.processes > 1 ? `${count_text(report.processes)}, whose figures are added up` : undefined],
    ["Ran", report.duration_ms > 0 ? milliseconds_text(report.duration_ms) : undefined],
    ["Allocated", in_blocks("alloc")],
    ["Alive at the peak", in_blocks("peak")],
    ["Alive at the end", in_blocks("inuse")],
    [
      "Short-lived",
      is_number(total_of(report, "short_lived"))
        ? part_text(total_of(report, "short_lived"), total_of(report, "alloc_blocks")) +
          " of the blocks were freed before 64 KiB more had been allocated"
        : undefined,
    ],
    [
      "Freed by another thread",
      is_number(total_of(report, "elsewhere"))
        ? part_text(total_of(report, "elsewhere"), total_of(report, "alloc_blocks")) + " of the blocks"
        : undefined,
    ],
    ["Samples", report.samples > 0 ? count_text(report.samples) : undefined],
    [
      "Rate",
      rate > 1
        ? `one sample for each ${bytes_text(rate)} that are allocated, on the average; figures are estimates, ±` +
          `${error_text(field(errors, "inuse"))} for what is alive at the end and ` +
          `±${error_text(field(errors, "alloc"))} for what was allocated (95 % confidence)`
        : "each allocation is a sample: figures are exact",
    ],
  ]);
}

function profile_notes(report) {
  return [
    report.dropped > 0
      ? note("warning", `${counted(report.dropped, "sample")} had no room in the tables: all figures are too low.`)
      : null,
    report.truncated > 0
      ? note("", `${counted(report.truncated, "stack")} could not be followed to the outermost function.`)
      : null,
  ];
}

// "parse, parse.cpp:12"; the parts as elements.
function place_of(report, index, line) {
  const described = list(report, "functions")[index];
  const file = String(field(described, "file") ?? "");
  const name = String(field(described, "name") ?? "unknown");
  const base = file === "" ? String(field(described, "module") ?? "") : file.slice(file.lastIndexOf("/") + 1);
  const place = base + (file !== "" && line > 0 ? ":" + line : "");
  return { name, place, title: `${field(described, "full_name") || name} ${file}`.trim() };
}
const place_words = (report, [index, line]) => {
  const { name, place } = place_of(report, index, line);
  return place === "" ? name : `${name} (${place})`;
};

const site_columns = [
  { title: "Site" },
  column("Alive at the end", "estimate, in bytes"),
  column("±", "of what is alive at the end, with 95 % confidence"),
  column("Blocks alive"),
  column("At the peak"),
  column("Allocated"),
  column("Blocks allocated"),
  column("Short-lived", "part of the blocks that was freed before 64 KiB more had been allocated"),
  column("Other thread", "part of the blocks that another thread freed"),
  column("Mean lifetime", "of the blocks that were freed"),
];

function site_row(report, site, show) {
  const { name, place, title } = place_of(report, site.function, site.line);
  const values = field(site, "values") ?? {};
  const value = (key) => field(values, key);
  const part = (key) =>
    is_number(value(key)) && value("alloc_blocks") > 0
      ? figure(value(key) / value("alloc_blocks"), (each) => part_text(each, 1))
      : nothing;
  const button = make("button", { type: "button", class: "site", title, click: () => show(site) }, name);
  return [
    {
      content: make("span", {}, button, place === "" ? null : make("span", { class: "muted" }, " " + place)),
      value: name,
    },
    figure(value("inuse"), bytes_text),
    figure(value("inuse") > 0 ? field(field(site, "errors"), "inuse") : undefined, error_text),
    figure(value("inuse_blocks"), count_text),
    figure(value("peak"), bytes_text),
    figure(value("alloc"), bytes_text),
    figure(value("alloc_blocks"), count_text),
    part("short_lived"),
    part("elsewhere"),
    figure(site.mean_lifetime_ms > 0 ? site.mean_lifetime_ms : undefined, milliseconds_text),
  ];
}

const part_columns = (title) => [{ title }, column("Allocated"), column("Blocks"), column("Alive at the end")];
const part_row = (label, value, each) => [
  { content: label, value },
  figure(each.alloc, bytes_text),
  figure(each.alloc_blocks, count_text),
  figure(each.inuse, bytes_text),
];

// All that is known of one site.
function site_details(report, site) {
  const { name, place, title } = place_of(report, site.function, site.line);
  const words = (frames) => frames.map((frame) => make("li", {}, make("code", {}, place_words(report, frame))));
  const stack = [...[...list(site, "via")].reverse(), [site.function, site.line], ...list(site, "callers")];
  const threads = list(site, "threads").map((each) => part_row(String(each.name || "unnamed"), each.name, each));
  const sizes = list(site, "sizes").map((each) =>
    part_row(each.bytes > 0 ? "up to " + bytes_text(each.bytes) : "unknown", each.bytes, each),
  );
  return [
    make("h3", {}, name),
    make("p", { class: "muted" }, title, " ", place),
    make("p", {}, "Its stack that allocated most, the innermost function first:"),
    make("ol", { class: "stack" }, words(stack)),
    make(
      "div",
      { class: "charts" },
      make_table("Threads that allocated", part_columns("Thread"), threads),
      make_table("Sizes of blocks", part_columns("Size"), sizes),
    ),
  ];
}

function site_parts(report) {
  const sites = list(report, "sites");
  const panel = make("div", { id: "site", class: "card", hidden: true, tabindex: "-1", "aria-live": "polite" });
  const show = (site) => {
    panel.hidden = false;
    panel.replaceChildren(...site_details(report, site));
    panel.scrollIntoView({ block: "nearest" });
    panel.focus({ preventScroll: true });
  };
  const rows = sites.map((site) => site_row(report, site, show));
  const box = make_table("Sites", site_columns, rows, { id: "sites" });
  const texts = new Map();
  [...box.querySelector("tbody").rows].forEach((row, index) => {
    const { name, place, title } = place_of(report, sites[index].function, sites[index].line);
    const via = list(sites[index], "via").map((frame) => place_words(report, frame));
    const threads = list(sites[index], "threads").map((each) => String(each.name));
    texts.set(row, [name, place, title, ...via, ...threads].join(" ").toLowerCase());
  });
  const found = make("span", { class: "muted", role: "status" }, counted(sites.length, "site"));
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const [row, text] of texts) row.hidden = !words.every((word) => text.includes(word));
    found.textContent = counted([...texts.keys()].filter((row) => !row.hidden).length, "site");
  };
  const search = make("input", { type: "search", id: "search", input: filter });
  const label = make("label", {}, "Find a site by function, file or thread", search);
  return [make("div", { class: "filter" }, label, found), box, panel];
}

function profile_page(report) {
  const timeline = heap_timeline(report);
  const program = String(field(report, "program") || "a program");
  const told = (name, words) =>
    is_number(total_of(report, name)) ? [`${bytes_text(total_of(report, name))} ${words}`] : [];
  const figures = [
    ...told("alloc", "allocated"),
    ...told("peak", "alive at the peak"),
    ...told("inuse", "alive at the end"),
  ];
  return {
    title: program.slice(program.lastIndexOf("/") + 1),
    is_command: true,
    kicker: "Heap profile",
    subtitle: `Who allocates: ${enumeration(figures)}.`,
    parts: [
      section(2, "Summary", profile_notes(report), profile_facts(report)),
      section(
        2,
        "Memory over time",
        timeline ?? note("", "It is known of a single process only, and not of a short one."),
      ),
      section(
        2,
        "Flame graph",
        make(
          "p",
          { class: "muted" },
          "Each function is as wide as what it and all that it calls stand for. A click, or Enter, makes a function as " +
            "wide as the page; Escape shows all.",
        ),
        ...flame_parts(report),
      ),
      section(
        2,
        "Sites",
        make(
          "p",
          { class: "muted" },
          "A site is the innermost function that does not only hand memory on, as operator new and containers do. Its " +
            "name shows its stack, threads and sizes.",
        ),
        ...site_parts(report),
      ),
    ],
  };
}
