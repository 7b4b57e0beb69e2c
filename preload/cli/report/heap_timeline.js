// Memory over time as a drawing, with the peak marked. Open it to change how it looks.
const svg_space = "http://www.w3.org/2000/svg";
function draw_svg(name, attributes, ...children) {
  const element = document.createElementNS(svg_space, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// 1, 2 or 5 times a power of `base` that divides `most` into at most `count` parts.
function step_of(most, count, base = 10) {
  const power = base ** Math.floor(Math.log(most / count) / Math.log(base));
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].map((each) => each * power);
  return steps.find((each) => most / each <= count) ?? most;
}
const ticks_of = (most, step) => Array.from({ length: Math.floor(most / step) + 1 }, (_, index) => index * step);

function timeline_points(report) {
  return list(report, "timeline").filter(
    (point) => Array.isArray(point) && is_number(point[0]) && is_number(point[1]) && point[0] >= 0 && point[1] >= 0,
  );
}

// Returns: a figure, or null where there is nothing to draw.
function heap_timeline(report) {
  const points = timeline_points(report);
  const last = Math.max(...points.map(([moment]) => moment));
  const most = Math.max(...points.map(([, bytes]) => bytes));
  if (points.length < 2 || !(last > 0) || !(most > 0)) return null;
  const [width, height, left, bottom, top] = [1000, 260, 82, 26, 22];
  const x = (moment) => left + ((width - left - 12) * moment) / last;
  const y = (bytes) => height - bottom - ((height - bottom - top) * bytes) / most;
  const line = points.map(([moment, bytes]) => `${x(moment).toFixed(1)},${y(bytes).toFixed(1)}`).join(" ");
  const parts = [];
  for (const bytes of ticks_of(most, step_of(most, 5, 1024))) {
    parts.push(draw_svg("line", { class: "grid", x1: left, x2: width - 12, y1: y(bytes), y2: y(bytes) }));
    const place = { class: "tick", x: left - 8, y: y(bytes) + 4, "text-anchor": "end" };
    parts.push(draw_svg("text", place, bytes_text(bytes)));
  }
  for (const moment of ticks_of(last, step_of(last, 8)))
    parts.push(
      draw_svg(
        "text",
        { class: "tick", x: x(moment), y: height - 6, "text-anchor": x(moment) > width - 40 ? "end" : "middle" },
        milliseconds_text(moment),
      ),
    );
  parts.push(draw_svg("polygon", { class: "area", points: `${x(points[0][0])},${y(0)} ${line} ${x(last)},${y(0)}` }));
  parts.push(draw_svg("polyline", { class: "line", points: line }));
  const peak = Math.min(field(report, "peak_ms") ?? 0, last);
  const words = `peak: ${bytes_text(field(field(report, "total"), "peak"))} after ${milliseconds_text(peak)}`;
  if (peak > 0) {
    const anchor_end = x(peak) > width / 2 ? "end" : "start";
    parts.push(draw_svg("line", { class: "peak", x1: x(peak), x2: x(peak), y1: top - 8, y2: height - bottom }));
    const place = { class: "peak-text", x: x(peak) + (anchor_end === "end" ? -6 : 6), y: 14, "text-anchor": anchor_end };
    parts.push(draw_svg("text", place, words));
  }
  const title = `Memory over time, from 0 to ${milliseconds_text(last)}; ${words}`;
  return make(
    "figure",
    { class: "chart timeline" },
    draw_svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title }, ...parts),
    make("figcaption", {}, "What the program holds, as the samples tell it."),
  );
}
