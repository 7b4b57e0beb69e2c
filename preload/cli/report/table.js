// Tables that sort by a click or key on a heading. Open it to change what a table can do.

// A cell is text, an element, or { content, value, kind }: `value` is what it sorts by, `kind` a class for its look.
const cell_of = (cell) =>
  cell !== null && typeof cell === "object" && !(cell instanceof Node) ? cell : { content: cell, value: cell };
const nothing = { content: no_value, value: undefined, kind: "missing" };
const figure = (value, text, kind = "") => (is_number(value) ? { content: text(value), value, kind } : nothing);

function is_before(left, right) {
  if (is_number(left) && is_number(right)) return left - right;
  return String(left).localeCompare(String(right), "en", { numeric: true });
}

// Sorts the rows by a column; those without a value come last in either direction.
function sort_rows(body, column, sign) {
  const rows = [...body.rows].map((row) => ({ row, value: row.cells[column].sort_value }));
  const missing = (entry) => entry.value === undefined || entry.value === null;
  rows.sort(
    (left, right) => missing(left) - missing(right) || (missing(left) ? 0 : sign * is_before(left.value, right.value)),
  );
  body.append(...rows.map((entry) => entry.row));
}

function heading_cell({ title, label, numeric, hint }, table, column) {
  const sort = () => {
    const direction = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", direction);
    sort_rows(table.tBodies[0], column, direction === "ascending" ? 1 : -1);
  };
  const button = make("button", { type: "button", click: sort, title: hint }, label ?? title);
  const heading = make("th", { scope: "col", class: numeric ? "numeric" : null }, button);
  return heading;
}

function body_row(columns, cells) {
  return make(
    "tr",
    {},
    cells.map((entry, column) => {
      const { content, value, kind = "" } = cell_of(entry);
      const classes = [kind, columns[column].numeric ? "numeric" : ""].filter(Boolean).join(" ");
      const cell = make(
        column === 0 ? "th" : "td",
        { scope: column === 0 ? "row" : null, class: classes || null },
        content ?? no_value,
      );
      cell.sort_value = value instanceof Node ? value.textContent : value;
      return cell;
    }),
  );
}

// columns: { title, label (an element instead of the title), numeric, hint }. Returns: the table in a box that scrolls
// by itself.
function make_table(caption, columns, rows, attributes = {}) {
  const table = make("table", attributes, make("caption", {}, caption));
  const head = table.createTHead().insertRow();
  head.append(...columns.map((column, index) => heading_cell(column, table, index)));
  table.append(
    make(
      "tbody",
      {},
      rows.map((cells) => body_row(columns, cells)),
    ),
  );
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table);
}

const allocator_column = { title: "Allocator" };
const allocator_cell = (name) => ({ content: allocator_label(name), value: name });
const column = (title, hint) => ({ title, hint, numeric: true });

// What holds for the cell that is surely better than all others: said by a word besides the colour.
const best_cell = (value, text, is_best) =>
  is_number(value) && is_best
    ? { content: [text(value), make("span", { class: "tag" }, "best")], value, kind: "best" }
    : figure(value, text);

// A ratio to the baseline with its verdict: an arrow says which way, the colour whether that is better, the words both.
// The classes "less" and "more" are the looks of what is better and what is worse.
const verdict_marks = { less: "▼", more: "▲", "no difference": "=" };
function verdict_kind(verdict, words) {
  if (verdict === "no difference") return "same";
  if (verdict !== "less" && verdict !== "more") return "missing";
  return words.better === null ? "same" : verdict === words.better ? "less" : "more";
}
function verdict_cell(ratio, verdict, words) {
  const value = field(ratio, "value");
  const mark = field(verdict_marks, verdict) ?? "";
  const content = [make("span", { "aria-hidden": "true", class: "mark" }, mark), verdict_text(verdict, ratio, words)];
  return { content, value, kind: verdict_kind(verdict, words) };
}
const ratio_cell = (ratio) =>
  is_number(field(ratio, "value"))
    ? {
        content: `${ratio.value.toFixed(3)} (${interval_text(ratio, (value) => value.toFixed(3))})`,
        value: ratio.value,
      }
    : nothing;
