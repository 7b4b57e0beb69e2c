// Charts that are drawn when they come into view and given up when they are far from it, so that a page with hundreds
// opens at once. Open it to change how bars and lines look; figures.js says what is drawn.
const has_charts = typeof Chart === "function";
const configurations = new Map(); // by canvas: a function that returns what Chart.js is to draw, in the present colours
const in_view = new Set();
let is_printing = false; // all are drawn then, in view or not

function draw(canvas) {
  if (!Chart.getChart(canvas)) new Chart(canvas, configurations.get(canvas)());
}
const erase = (canvas) => Chart.getChart(canvas)?.destroy();

function redraw() {
  for (const canvas of configurations.keys()) erase(canvas);
  in_view.forEach(draw);
}

const observer =
  has_charts &&
  new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) (in_view.add(target), draw(target));
        else {
          in_view.delete(target);
          if (!is_printing) erase(target);
        }
      }
    },
    { rootMargin: "800px 0px" },
  );

if (has_charts) {
  Chart.defaults.animation = false;
  Chart.defaults.responsive = true;
  Chart.defaults.maintainAspectRatio = false;
  Chart.defaults.font.family = "system-ui, sans-serif";
  theme_changes.push(redraw);
  addEventListener("beforeprint", () => {
    is_printing = true;
    show_theme("light");
    for (const canvas of configurations.keys()) draw(canvas);
  });
  addEventListener("afterprint", () => {
    is_printing = false;
    show_wanted_theme();
    redraw();
  });
}

// Returns: a figure with a chart, or null where there is no Chart.js or nothing to draw.
function chart_figure(title, description, height, configuration) {
  if (!has_charts) return null;
  const canvas = make("canvas", { role: "img", "aria-label": title + ". " + description });
  configurations.set(canvas, configuration);
  observer.observe(canvas);
  return make(
    "figure",
    { class: "chart" },
    make("figcaption", {}, make("b", {}, title), " ", description),
    make("div", { class: "canvas", style: `height: ${height}px` }, canvas),
  );
}

const series_colour = (name) => colour("series-" + (look_of(name) % 8));
const dashes = [[], [7, 3], [2, 2], [10, 3, 2, 3], [5, 5], [12, 4], [3, 6], [1, 4]];
const marks = ["circle", "rect", "triangle", "rectRot", "crossRot", "star", "rectRounded", "cross"];
const shortened = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

// The axis with the names; on a narrow screen they are cut.
const name_axis = (more = {}) => ({
  ...more,
  grid: { display: false },
  ticks: {
    color: colour("text"),
    autoSkip: false,
    callback(value) {
      const lines = [this.getLabelForValue(value)].flat();
      return lines.map((line) => shortened(line, this.chart.width < 480 ? 18 : 30));
    },
  },
});

// An axis; `format` makes the text of a tick from its value.
const axis = (title, format, more = {}) => ({
  title: { display: true, text: title, color: colour("muted") },
  grid: { color: colour("grid"), borderColor: colour("line") },
  ...more,
  ticks: { color: colour("muted"), maxRotation: 0, autoSkipPadding: 12, callback: format, ...more.ticks },
});

// The legend's lines are dashed as those of the chart are.
const dashed_labels = (chart) =>
  Chart.defaults.plugins.legend.labels
    .generateLabels(chart)
    .map((label) => ({ ...label, lineDash: chart.data.datasets[label.datasetIndex].borderDash ?? [] }));

const base_options = (label) => ({
  plugins: {
    legend: {
      position: "bottom",
      labels: { color: colour("text"), usePointStyle: true, boxWidth: 28, padding: 12, generateLabels: dashed_labels },
    },
    tooltip: { callbacks: { label }, usePointStyle: true },
  },
});

// The interval of each bar as a whisker, and its figure in words behind it. Both come with the dataset: `intervals` and
// `texts`, by bar.
const whiskers = {
  id: "whiskers",
  afterDatasetsDraw(chart, _, { reference }) {
    const { ctx } = chart;
    const { x } = chart.scales;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour("text");
    ctx.lineWidth = 1.5;
    ctx.font = "12px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    chart.data.datasets.forEach((dataset, index) => {
      if (!chart.isDatasetVisible(index)) return;
      chart.getDatasetMeta(index).data.forEach((bar, place) => draw_whisker(ctx, x, bar, dataset, place));
    });
    if (reference) draw_reference(ctx, x.getPixelForValue(reference), chart.chartArea);
    ctx.restore();
  },
};

function draw_reference(ctx, at, { top, bottom }) {
  ctx.setLineDash([4, 4]);
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(at, top);
  ctx.lineTo(at, bottom);
  ctx.stroke();
}

// A bar that is longer than the axis says in itself how long.
function draw_length(ctx, x, bar, value) {
  ctx.save();
  ctx.font = "bold 10px system-ui, sans-serif";
  ctx.fillStyle = colour("ground");
  ctx.textAlign = "right";
  ctx.fillText(factor_text(value), x.right - 4, bar.y);
  ctx.restore();
}

function draw_whisker(ctx, x, bar, { data, intervals, texts }, place) {
  if (data[place] > x.max) return draw_length(ctx, x, bar, data[place]);
  const interval = intervals[place];
  let end = x.getPixelForValue(is_number(data[place]) ? data[place] : 0);
  if (interval) {
    const cap = Math.min(5, bar.height / 2 - 1);
    const low = x.getPixelForValue(Math.max(interval.low, 0));
    const high = x.getPixelForValue(Math.min(interval.high, x.max));
    ctx.beginPath();
    for (const edge of [low, high]) {
      ctx.moveTo(edge, bar.y - cap);
      ctx.lineTo(edge, bar.y + cap);
    }
    ctx.moveTo(low, bar.y);
    ctx.lineTo(high, bar.y);
    ctx.stroke();
    end = Math.max(end, high);
  }
  if (texts) ctx.fillText(texts[place], end + 6, bar.y);
}

// One bar of each allocator: `entries` are { allocator, value, interval, text }.
function single_bars(entries) {
  const colours = entries.map(({ allocator }) => series_colour(allocator));
  const dataset = {
    data: entries.map(({ value }) => value ?? null),
    intervals: entries.map(({ interval }) => interval),
    texts: entries.map(({ text }) => text),
    backgroundColor: colours,
    barPercentage: 0.8,
    maxBarThickness: 28,
  };
  return { labels: entries.map(({ allocator }) => allocator), datasets: [dataset] };
}

// Groups of bars: `rows` are { label, entries }, each with the same allocators in the same order.
function grouped_bars(rows) {
  const datasets = rows[0].entries.map(({ allocator }, index) => ({
    label: allocator,
    data: rows.map(({ entries }) => entries[index].value ?? null),
    intervals: rows.map(({ entries }) => entries[index].interval),
    backgroundColor: series_colour(allocator),
    pointStyle: "rect",
    barPercentage: 0.95,
    categoryPercentage: 0.8,
  }));
  return { labels: rows.map(({ label }) => label), datasets };
}

const ends = (rows) =>
  rows.flatMap(({ entries }) => entries.flatMap(({ value, interval }) => [value, interval?.high])).filter(is_number);

// A chart of bars from 0. `tick` makes the words of the axis of a value; `reference` is where a line stands, and
// `longest` where the axis ends at the latest.
function bar_figure({ title, description, rows, axis_title, tick, reference, longest = Infinity }) {
  if (ends(rows).length === 0) return null;
  const single = rows.length === 1;
  const bars = single ? rows[0].entries.length * 30 : rows.length * (rows[0].entries.length * 11 + 14) + 40;
  const most = Math.max(...ends(rows));
  const configuration = () => {
    const label = ({ datasetIndex, dataIndex }) => {
      const entry = rows[single ? 0 : dataIndex].entries[single ? dataIndex : datasetIndex];
      return `${entry.allocator}: ${entry.text}`;
    };
    const options = base_options(label);
    options.plugins.legend.display = !single;
    options.plugins.whiskers = { reference };
    options.scales = {
      x: axis(axis_title, tick, {
        beginAtZero: true,
        ...(most > longest ? { max: longest } : { suggestedMax: most }),
        ticks: { maxTicksLimit: 7 },
      }),
      y: name_axis(),
    };
    options.indexAxis = "y";
    options.layout = { padding: { right: single ? 76 : 12 } };
    return {
      type: "bar",
      data: single ? single_bars(rows[0].entries) : grouped_bars(rows),
      options,
      plugins: [whiskers],
    };
  };
  return chart_figure(title, description, Math.max(bars + 64, 250), configuration);
}

// What the lines of a chart are held against: { label, points }, dashed and without marks.
const reference_dataset = ({ label, points }) => ({
  label,
  data: points,
  borderColor: colour("muted"),
  backgroundColor: colour("muted"),
  borderWidth: 1.5,
  borderDash: [6, 5],
  pointStyle: "line",
  pointRadius: 0,
  pointHitRadius: 8,
});

// Lines: `series` are { allocator, points: [{ x, y }] }; `x` and `y` are functions that return axes. Points are marked
// here and there, "all", or "only", without a line.
function line_figure({ title, description, series, x, y, label, marked, reference }) {
  if (!series.some(({ points }) => points.length > 0)) return null;
  // On lines the marks stand apart, and each line's at places of its own.
  const radius = ({ dataIndex, datasetIndex, dataset }) =>
    marked === "only" || marked === "all" || dataset.data.length === 1 || (marked && dataIndex % 5 === datasetIndex % 5) ? 3.5 : 0;
  const configuration = () => {
    const datasets = series.map(({ allocator, points }) => ({
      label: allocator,
      data: points,
      borderColor: series_colour(allocator),
      backgroundColor: series_colour(allocator),
      borderWidth: 2,
      borderDash: marked ? [] : dashes[look_of(allocator) % dashes.length],
      pointStyle: marked ? marks[look_of(allocator) % marks.length] : "line",
      pointRadius: radius,
      pointHitRadius: 8,
      showLine: marked !== "only",
    }));
    if (reference) datasets.push(reference_dataset(reference));
    const options = base_options(({ dataset, raw }) => `${dataset.label}: ${label(raw)}`);
    Object.assign(options, {
      parsing: false,
      scales: { x: x(), y: y() },
      interaction: { mode: "nearest", axis: "x", intersect: false },
    });
    options.plugins.tooltip.callbacks.title = () => "";
    return { type: "line", data: { datasets }, options };
  };
  return chart_figure(title, description, 300, configuration);
}
