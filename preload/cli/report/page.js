// Reads the document and builds the page. Open it to add a kind of document or to change the frame of all pages.
const pages = { "sluice-compare 1": compare_page, "sluice-bench 2": bench_page, "sluice-profile 1": profile_page };

function page_header(report, { title, is_command, kicker, subtitle }) {
  const date =
    field(report, "date") === undefined ? [] : [make("time", { datetime: report.date }, date_text(report.date))];
  const version = field(report, "sluice_version") === undefined ? [] : ["Sluice " + report.sluice_version];
  const line = [kicker, ...version, ...date].flatMap((part, index) => (index === 0 ? [part] : [" · ", part]));
  return make(
    "header",
    {},
    make("div", { class: "kicker" }, make("span", {}, line), theme_button()),
    make("h1", {}, is_command ? make("code", {}, title) : title),
    make("p", { class: "lead" }, subtitle),
  );
}

const contents = (main) =>
  make(
    "nav",
    { "aria-label": "Contents" },
    [...main.querySelectorAll("h2")].map((each) => make("a", { href: "#" + each.parentElement.id }, each.textContent)),
  );

function legend(report) {
  const entries = list(report, "allocators").map(({ name }) => make("li", {}, allocator_label(name)));
  if (entries.length === 0) return null;
  return make("ul", { class: "legend", "aria-label": "Allocators and their colours" }, entries);
}

const chart_js_text = () => ` Charts by Chart.js ${Chart.version}, under the MIT licence.`;

function build(report) {
  const make_page = Object.hasOwn(pages, report.schema) ? pages[report.schema] : null;
  if (make_page === null) throw new Error(`it is of a kind unknown here: ${JSON.stringify(report.schema)}`);
  report.allocators = list(report, "allocators").map((allocator) => ({ ...allocator, name: String(allocator.name) }));
  give_looks(report.allocators.map(({ name }) => name));
  const page = make_page(report);
  const main = make("main", {}, page.parts);
  document.title = `${page.title} – Sluice`;
  return [
    page_header(report, page),
    field(report, "partial") ? note("warning", make("b", {}, "Partial results. "), page.partial) : null,
    has_charts || report.schema === "sluice-profile 1"
      ? null
      : note(
          "",
          make("b", {}, "Without charts: "),
          "the command was built without Chart.js. All figures stand in the tables.",
        ),
    make("div", { class: "bar" }, contents(main), legend(report)),
    main,
    make(
      "footer",
      {},
      `Written by Sluice ${field(report, "sluice_version") ?? ""}.`,
      has_charts && report.schema !== "sluice-profile 1" ? chart_js_text() : null,
    ),
  ].filter(Boolean);
}

function show_page() {
  const place = document.getElementById("page");
  try {
    place.replaceChildren(...build(JSON.parse(document.getElementById("document").textContent)));
  } catch (error) {
    place.replaceChildren(note("bad", make("b", {}, "This document cannot be shown: "), error.message));
    throw error;
  }
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => (each.open = true)));
  document.getElementById(location.hash.slice(1))?.scrollIntoView();
}
show_page();
