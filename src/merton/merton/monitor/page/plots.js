// Small plots of the arm's motion and the timeline of the trial, drawn as SVG. Text is set as text.

const NS = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);
const SHOWN_S = 30; // of the cell's clock
const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [340, 128, 44, 8, 20, 18];
const SERIES = [1, 2, 3, 4, 5, 6]; // columns of the joints' speeds

const PLOTS = [
  { title: "joint speeds", unit: "°/s", columns: SERIES, names: ["base", "shoulder", "elbow", "wrist 1", "wrist 2", "wrist 3"], least: 10, signed: true },
  { title: "speed of the tool", unit: "mm/s", columns: [7], least: 50 },
  { title: "height of the tool", unit: "mm", columns: [8], least: 100 },
  { title: "distance to table and walls", unit: "mm", columns: [9], least: 50 },
];

export function shape(tag, attributes, text = "") {
  const made = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text) made.textContent = text;
  return made;
}

// The round number above a value: 1, 2 or 5 times a power of ten.
function rounded(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((digit) => digit * power).find((one) => one >= value * 0.999);
}

// Rows of MotionLog: stamp, six joint speeds, speed and height of the tool, distance to table and walls.
export function motion(rows) {
  if (!rows.length) return;
  const to = rows[rows.length - 1][0];
  const shown = rows.filter((row) => row[0] >= to - SHOWN_S);
  byId("motion").replaceChildren(...PLOTS.map((plot) => drawn(plot, shown, to)));
}

function drawn(plot, rows, to) {
  const values = rows.flatMap((row) => plot.columns.map((column) => row[column]));
  const high = rounded(Math.max(plot.least, ...values.map((value) => (plot.signed ? Math.abs(value) : value))));
  const low = plot.signed ? -high : Math.min(0, ...values) < 0 ? -rounded(-Math.min(...values)) : 0;
  const x = (stamp) => LEFT + (WIDTH - LEFT - RIGHT) * (1 - (to - stamp) / SHOWN_S);
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - low) / (high - low));
  const newest = rows[rows.length - 1];
  const now = plot.signed ? Math.max(...plot.columns.map((column) => Math.abs(newest[column]))) : newest[plot.columns[0]];
  const said = `${plot.title} [${plot.unit}]: ${plot.signed ? "fastest " : ""}${now.toFixed(0)}`;
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": said, class: "plot" });
  svg.append(shape("text", { x: 0, y: 12, class: "title" }, `${plot.title} [${plot.unit}]`));
  svg.append(shape("text", { x: WIDTH - RIGHT, y: 12, class: "now" }, now.toFixed(0)));
  for (const value of [low, (low + high) / 2, high]) {
    svg.append(shape("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value), class: value ? "grid" : "zero" }));
    svg.append(shape("text", { x: LEFT - 4, y: y(value) + 4, class: "tick" }, Number(value.toFixed(2)).toString()));
  }
  for (const back of [0, 10, 20, 30]) {
    const anchor = back === 0 ? "end" : back === SHOWN_S ? "start" : "middle";
    svg.append(shape("text", { x: x(to - back), y: HEIGHT - 4, class: "time", "text-anchor": anchor }, back ? `−${back} s` : "now"));
  }
  plot.columns.forEach((column, i) => {
    const points = rows.map((row) => `${x(row[0]).toFixed(1)},${y(row[column]).toFixed(1)}`).join(" ");
    svg.append(shape("polyline", { points, class: `series s${plot.columns.length > 1 ? i + 1 : 0}` }));
  });
  const figure = document.createElement("figure");
  figure.append(svg);
  if (plot.names) {
    const legend = document.createElement("ul");
    legend.className = "legend";
    plot.names.forEach((name, i) => {
      const item = document.createElement("li");
      item.className = `s${i + 1}`;
      item.textContent = name;
      legend.append(item);
    });
    figure.append(legend);
  }
  return figure;
}

// The timeline of the trial: a bar with its stages, marks for its events, and the same in words.
export function timeline(content) {
  if (!content.trial_id && !content.stages.length) return;
  byId("timeline-trial").textContent = `${content.trial_id}${content.running ? `, ${content.elapsed_s.toFixed(1)} s` : `, ended after ${content.elapsed_s.toFixed(1)} s`}`;
  const length = Math.max(content.elapsed_s, 0.1);
  const [width, height, top] = [560, 50, 16];
  const x = (at) => (width * Math.min(at, length)) / length;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "stages and events of the trial", class: "timeline" });
  for (const one of content.stages) {
    const [from, to] = [x(one.start_s), x(one.end_s ?? length)];
    const rect = shape("rect", { x: from, y: top, width: Math.max(1, to - from - 1), height: 20, class: `stage ${one.stage.replace(/[^a-z]/g, "")}` });
    rect.append(shape("title", {}, `${named(one)}: ${seconds(one, length)}`));
    svg.append(rect);
    if (to - from > 8 * named(one).length) svg.append(shape("text", { x: (from + to) / 2, y: top + 14, class: "name" }, named(one)));
  }
  for (const one of content.events) {
    const mark = shape("path", { d: `M${x(one.at_s)} ${top} l-5 -10 h10 z`, class: `mark ${one.kind}` });
    mark.append(shape("title", {}, `${one.at_s.toFixed(1)} s: ${one.kind}, ${one.text}`));
    svg.append(mark);
  }
  svg.append(shape("text", { x: 0, y: height - 2, class: "time", "text-anchor": "start" }, "0 s"));
  svg.append(shape("text", { x: width, y: height - 2, class: "time", "text-anchor": "end" }, `${length.toFixed(1)} s`));
  const words = document.createElement("ol");
  words.className = "stages";
  const rows = content.stages.map((one) => ({ at: one.start_s, text: `${named(one)} ${seconds(one, length)}`, kind: "" }));
  rows.push(...content.events.map((one) => ({ at: one.at_s, text: `${one.kind} at ${one.at_s.toFixed(1)} s: ${one.text}`, kind: one.kind })));
  rows.sort((a, b) => a.at - b.at);
  for (const row of rows) {
    const item = document.createElement("li");
    item.textContent = row.text;
    if (row.kind) item.className = row.kind;
    words.append(item);
  }
  byId("timeline").replaceChildren(svg, words);
}

const named = (one) => (one.step ? `${one.stage} ${one.step}` : one.stage);
const seconds = (one, length) => `${((one.end_s ?? length) - one.start_s).toFixed(1)} s`;
