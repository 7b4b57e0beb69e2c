// Elements of the page. All text of the document becomes text nodes here and nowhere markup. Open it to add a kind of
// element that several parts of the page share.

// make("p", { class: "note" }, "text", element, …); an attribute of undefined, null or false is left out.
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") element.addEventListener(key, value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// Allocators have one colour, dash and mark on the whole page. The well-known keep theirs from page to page.
const known_allocators = ["sluice", "system", "mimalloc", "jemalloc", "tcmalloc", "snmalloc", "rpmalloc", "hoard"];
const looks = new Map();
function give_looks(names) {
  const free = new Set([...Array(Math.max(known_allocators.length, names.length)).keys()]);
  const take = (name, index) => {
    looks.set(name, index);
    free.delete(index);
  };
  for (const name of names) if (known_allocators.includes(name)) take(name, known_allocators.indexOf(name));
  for (const name of names) if (!looks.has(name)) take(name, free.values().next().value);
}
const look_of = (name) => looks.get(name) ?? 0;

const swatch = (name) =>
  make("span", { class: "swatch", style: `--colour: var(--series-${look_of(name) % 8})`, "aria-hidden": "true" });
const allocator_label = (name) => make("span", { class: "allocator" }, swatch(name), name);

const note = (kind, ...children) => make("p", { class: "note " + kind }, ...children);

// Names of sections, for links to them; no two are equal.
const anchors = new Set();
function anchor(text) {
  const base = String(text).replace(/[^A-Za-z0-9_.]+/g, "-") || "section";
  let name = base;
  for (let count = 2; anchors.has(name); ++count) name = base + "-" + count;
  anchors.add(name);
  return name;
}

// A section under a heading of that level (2 or 3); null where nothing is to stand in it.
function section(level, title, ...children) {
  if (!children.flat().some(Boolean)) return null;
  const id = anchor(title);
  return make(
    "section",
    { id, "aria-labelledby": id + "-title" },
    make("h" + level, { id: id + "-title" }, title),
    ...children,
  );
}

function description_list(entries) {
  const rows = entries.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return make(
    "dl",
    { class: "facts" },
    rows.map(([term, value]) => make("div", {}, make("dt", {}, term), make("dd", {}, value))),
  );
}

// A command line with a button that copies it.
function command_box(text) {
  const code = make("code", {}, text);
  const copy = async () => {
    getSelection().selectAllChildren(code);
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Selected";
    }
  };
  const button = make("button", { type: "button", class: "small", click: copy }, "Copy");
  return make("div", { class: "command" }, make("pre", { tabindex: "0", "aria-label": "Command line" }, code), button);
}
