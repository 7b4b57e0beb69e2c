// The charts and tables that both kinds of reports have: bars of time and memory, memory over time, curves of latency.
// Open it to change what one of them shows.

// Memory of the program from its start on. `timelines` are pairs of an allocator and { interval_ms, rss_kib }.
function timeline_figure(timelines) {
  const points = ({ interval_ms, rss_kib }) =>
    rss_kib.map((kib, index) => ({ x: (index * interval_ms) / 1000, y: kib / 1024 }));
  const series = timelines
    .filter(([, timeline]) => is_number(field(timeline, "interval_ms")) && list(timeline, "rss_kib").every(is_number))
    .map(([allocator, timeline]) => ({ allocator, points: points(timeline) }));
  return line_figure({
    title: "Memory over time",
    description: "Resident memory during the first run. Less is better.",
    series,
    x: () => axis("seconds since the start", tick_text, { type: "linear", min: 0 }),
    y: () => axis("MiB", tick_text, { type: "linear", beginAtZero: true }),
    label: ({ x, y }) => `${digits(y)} MiB after ${digits(x)} s`,
  });
}

// Percentiles stand as far apart as the ones above them are rare: 90, 99 and 99.9 are at equal distances.
const rareness = (percentile) => -Math.log10(1 - percentile / 100);
const percentile_marks = [50, 90, 99, 99.9, 99.99, 99.999, 99.9999];
const percentile_text = (percentile) => String(Number(percentile.toFixed(6)));
const shortest_drawn = 1; // ns: a logarithmic axis has no 0

function latency_points(curve) {
  const rarest = field(curve, "count") > 0 ? Math.log10(curve.count) : Infinity; // the longest call: one of all
  const points = list(curve, "points").filter((point) => Array.isArray(point) && point.every(is_number));
  return points
    .map(([percentile, ns]) => ({
      x: percentile < 100 ? rareness(percentile) : rarest,
      y: Math.max(ns, shortest_drawn),
      percentile,
      ns,
    }))
    .filter(({ x }) => Number.isFinite(x) && x <= rarest);
}

function percentile_axis(series) {
  const most = Math.max(1, ...series.flatMap(({ points }) => points.map(({ x }) => x)));
  const text = (value) => percentile_text(100 - 100 / 10 ** value);
  const afterBuildTicks = (scale) => {
    const pixels = (scale.chart.width - 100) / most; // of one unit
    const needed = (left, right) => (text(left).length + text(right).length) * 3.3 + 6;
    scale.ticks = [];
    for (const value of percentile_marks.map(rareness)) {
      const last = scale.ticks.at(-1)?.value;
      const has_room = last === undefined || (value - last) * pixels >= needed(last, value);
      if (value <= most && has_room) scale.ticks.push({ value });
    }
  };
  return axis("percentile of the calls", text, {
    type: "linear",
    min: 0,
    max: most,
    afterBuildTicks,
    ticks: { autoSkip: false },
  });
}

const is_power_of_ten = (value) => Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-9;

function latency_figure(operation, latency) {
  const series = latency
    .map(([allocator, entry]) => ({ allocator, points: latency_points(field(entry, operation)) }))
    .filter(({ points }) => points.length > 0);
  return line_figure({
    title: `Latency of ${operation}`,
    description: "How long all but the slowest of the calls took, by percentile. Lower is better.",
    series,
    x: () => percentile_axis(series),
    y: () =>
      axis("a call", (value) => (is_power_of_ten(value) ? scaled(value, time_units, tick_text) : null), {
        type: "logarithmic",
      }),
    label: ({ percentile, ns }) => `${latency_text(ns)} at ${percentile_text(percentile)} %`,
    marked: true,
  });
}

const operations = ["malloc", "free", "realloc"];
const percentile_columns = [
  ["p50", "50 %"],
  ["p90", "90 %"],
  ["p99", "99 %"],
  ["p99_9", "99.9 %"],
  ["p99_99", "99.99 %"],
  ["max", "longest"],
];

function latency_table(caption, latency) {
  const columns = [
    { title: "Allocator" },
    { title: "Call" },
    column("Calls"),
    column("mean"),
    ...percentile_columns.map(([, title]) => column(title, "latency of a call")),
  ];
  const rows = operations.flatMap((operation) => {
    const curves = latency
      .map(([allocator, entry]) => [allocator, field(entry, operation)])
      .filter(([, curve]) => curve);
    return curves.map(([allocator, curve]) => [
      allocator_cell(allocator),
      operation,
      figure(field(curve, "count"), count_text),
      ...["mean", ...percentile_columns.map(([name]) => name)].map((name) =>
        figure(field(curve, name), latency_text),
      ),
    ]);
  });
  return rows.length === 0 ? null : make_table(caption, columns, rows);
}

const timer_names = { tsc: "the processor's time stamp counter", clock: "the system's monotonic clock" };

function timer_note(latency) {
  const overheads = latency
    .map(([allocator, entry]) => [allocator, field(entry, "timer"), field(entry, "overhead_ns")])
    .filter(([, timer, overhead]) => timer !== undefined || is_number(overhead));
  if (overheads.length === 0) return null;
  const timers = [...new Set(overheads.map(([, timer]) => field(timer_names, timer) ?? timer).filter(Boolean))];
  const values = overheads.map(([, , overhead]) => overhead).filter(is_number);
  const subtracted =
    values.length === 0
      ? ""
      : ` What taking the time itself costs is subtracted: ${nanoseconds_text(
          Math.min(...values),
        )}${Math.max(...values) > Math.min(...values) ? " to " + nanoseconds_text(Math.max(...values)) : ""}.`;
  return make(
    "p",
    { class: "muted" },
    `Each call was timed${timers.length ? " by " + timers.join(", ") : ""}.${subtracted}`,
  );
}

// Charts and table of latencies, or nothing. `latency` are pairs of an allocator and its curves.
function latency_parts(latency, caption) {
  const pairs = latency.filter(([, entry]) => operations.some((operation) => field(entry, operation)));
  if (pairs.length === 0) return { charts: [], tables: [] };
  return {
    charts: operations.map((operation) => latency_figure(operation, pairs)),
    tables: [latency_table(caption, pairs), timer_note(pairs)],
  };
}

// Rows of bars in the largest unit in which the longest is at least 1; also returns the unit's name.
function in_unit(rows, units) {
  const most = Math.max(...ends(rows));
  const [factor, unit] = units.filter(([least]) => most >= least).at(-1) ?? units[0];
  return { unit, rows: scaled_rows(rows, () => factor) };
}

// `factor` says by row what its values are divided by.
const scaled_rows = (rows, factor) =>
  rows.map((row) => ({
    ...row,
    entries: row.entries.map((entry) => ({
      ...entry,
      value: is_number(entry.value) ? entry.value / factor(row) : undefined,
      interval:
        is_number(field(entry.interval, "low")) && is_number(field(entry.interval, "high"))
          ? { low: entry.interval.low / factor(row), high: entry.interval.high / factor(row) }
          : null,
    })),
  }));

// Bars of values in ns or KiB, as `units` has them. `axis_title` makes the axis' title of the unit's name.
function unit_bars(title, description, rows, units, axis_title) {
  if (ends(rows).length === 0) return null;
  const scaled = in_unit(rows, units);
  return bar_figure({ title, description, rows: scaled.rows, axis_title: axis_title(scaled.unit), tick: tick_text });
}
