// Figures and words as the report prints them. Open it to change how a number, a ratio or a verdict reads.
const no_value = "–";
const unit_space = "\u00a0";

const is_number = (value) => typeof value === "number" && Number.isFinite(value);

// An own field of a document's object; names such as "constructor" are no fields of one that lacks them.
const field = (object, name) =>
  object !== null && typeof object === "object" && Object.hasOwn(object, name)
    ? (object[name] ?? undefined)
    : undefined;
const list = (object, name) => (Array.isArray(field(object, name)) ? object[name] : []);
const fields = (object) => (object !== null && typeof object === "object" ? Object.entries(object) : []);

// Three significant digits, and never an exponent.
function digits(value) {
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en-US");
  if (size === 0) return "0";
  if (size < 0.001) return "<" + unit_space + "0.001";
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3);
}

// On an axis: no digits that its steps do not need.
const tick_text = (value) => Number(value.toPrecision(3)).toLocaleString("en-US");

// In the largest of the units, [factor, name] from small to large, that leaves a figure of at least 1.
function scaled(value, units, write = digits) {
  if (!is_number(value)) return no_value;
  const size = Math.abs(value);
  const [factor, name] = units.filter(([least]) => size >= least * 0.9995).at(-1) ?? units[0];
  return write(value / factor) + unit_space + name;
}

const time_units = [
  [1, "ns"],
  [1e3, "µs"],
  [1e6, "ms"],
  [1e9, "s"],
];
const memory_units = [
  [1, "KiB"],
  [1024, "MiB"],
  [1024 * 1024, "GiB"],
];
const nanoseconds_text = (value) => scaled(value, time_units);
// Of a single call: what reading the clock costs is subtracted, and may leave nothing.
const latency_text = (value) => (is_number(value) && value < 0.5 ? "below the clock’s step" : nanoseconds_text(value));
const seconds_text = (value) => (is_number(value) ? nanoseconds_text(value * 1e9) : no_value);
const memory_text = (kib) => scaled(kib, memory_units);
const number_text = (value) => (is_number(value) ? digits(value) : no_value);
const count_text = (value) => (is_number(value) ? Math.round(value).toLocaleString("en-US") : no_value);
const factor = (value) => value.toFixed(value >= 9.995 ? 1 : 2) + unit_space + "×";
const factor_text = (value) => (is_number(value) ? factor(value) : no_value);
const interval_text = (interval, text) =>
  is_number(field(interval, "low")) && is_number(field(interval, "high"))
    ? text(interval.low) + " to " + text(interval.high)
    : no_value;
const counted = (count, one, many = one + "s") => count_text(count) + unit_space + (count === 1 ? one : many);

// What the interval of a ratio says. `words` are those for less and for more, as "faster" and "slower".
function verdict_text(verdict, ratio, words) {
  const value = field(ratio, "value");
  if (verdict === "no difference") return "no sure difference";
  if ((verdict !== "less" && verdict !== "more") || !is_number(value)) return "too little to tell";
  if (value >= 2) return value.toFixed(1) + " times " + words.whole;
  return (Math.abs(value - 1) * 100).toFixed(1) + unit_space + "% " + (value < 1 ? words.less : words.more);
}
const time_words = { less: "faster", more: "slower", whole: "as long", better: "less" };
const memory_words = { less: "less", more: "more", whole: "as much", better: "less" };
const plain_words = { less: "lower", more: "higher", whole: "as much", better: "less" };
// Of figures of a program's own, of which less or more is better, or nobody knows.
const own_words = {
  less: { less: "lower, better", more: "higher, worse", whole: "as much, worse", better: "less" },
  more: { less: "lower, worse", more: "higher, better", whole: "as much, better", better: "more" },
  unknown: { ...plain_words, better: null },
};

// A command line as a shell reads it; one with control characters in the quotes that name them.
function quoted(word) {
  if (/^[\w+=./,:@%-]+$/.test(word)) return word;
  if (!/[\x00-\x1f\x7f]/.test(word)) return "'" + word.replaceAll("'", "'\\''") + "'";
  const escape = (letter) => "\\x" + letter.charCodeAt(0).toString(16).padStart(2, "0");
  return "$'" + word.replace(/['\\]/g, "\\$&").replace(/[\x00-\x1f\x7f]/g, escape) + "'";
}
const command_text = (words) => words.map((word) => quoted(String(word))).join(" ");

// "21 November 2026, 19:38 UTC"; what is no date stays as it is.
function date_text(text) {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return String(text);
  const day = { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" };
  const time = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: "UTC" };
  return date.toLocaleDateString("en-GB", day) + ", " + date.toLocaleTimeString("en-GB", time) + " UTC";
}

// "a, b and c".
const enumeration = (words) =>
  words.length < 2 ? words.join("") : words.slice(0, -1).join(", ") + " and " + words.at(-1);
