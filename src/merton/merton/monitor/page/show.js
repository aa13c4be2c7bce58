// Shows each section of the state. All text is set as text, never as HTML.

const byId = (id) => document.getElementById(id);

export function element(tag, text = "", className = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

// Screen readers speak changes: do not set the same text again.
export function setText(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text;
}

function table(caption, heads, rows) {
  const made = element("table");
  if (caption) made.append(element("caption", caption));
  const head = element("tr");
  heads.forEach(([title, kind]) => {
    const cell = element("th", title, kind);
    cell.scope = "col";
    head.append(cell);
  });
  made.createTHead().append(head);
  const body = made.createTBody();
  for (const row of rows) {
    const line = element("tr");
    row.forEach((cell, i) => line.append(cell instanceof Node ? cell : element("td", cell ?? "–", heads[i][1])));
    body.append(line);
  }
  return made;
}

function list(id, pairs) {
  byId(id).replaceChildren(...pairs.flatMap(([name, value]) => [element("dt", name), element("dd", value)]));
}

const STOPPED = ["COLLISION_STOP", "EMERGENCY_STOP", "FAULT"];
const fixed = (value, digits) => (value === null || value === undefined ? "–" : value.toFixed(digits));

const NOT_CURRENT = {
  connecting: "Nothing is known yet: this page is not connected.",
  lost: "The connection is lost: this content is outdated.",
  old: "monitor_node is silent: this content is outdated.",
};

// The band: the state of the arm, or of the cell. `line`: "live", "connecting" before the first update, "lost", or "old" if
// updates come but their content is old.
// A state that may not be that of the present is never shown as one: its age [s] stands beside it.
export function safety(state, line, age) {
  const arm = state.safety;
  const cell = state.cell_safety;
  const stopped = arm && STOPPED.includes(arm.mode);
  const held = cell && STOPPED.includes(cell.mode);
  let kind = "unknown";
  let mode = "unknown";
  let why = "no message of the arm yet";
  if (arm) {
    mode = arm.mode.replace("_", " ");
    why = arm.message + (arm.links.length ? ` (${arm.links.join(" – ")})` : "");
    kind = stopped ? "stopped" : arm.mode === "REDUCED" ? "reduced" : "normal";
    if (!stopped && held) {
      [kind, mode, why] = ["stopped", `CELL: ${cell.mode.replace("_", " ")}`, cell.message];
    }
  }
  const last = mode;
  if (line !== "live") {
    [kind, mode, why] = ["unknown", "UNKNOWN", `${NOT_CURRENT[line]} Use the robot's own stop.`];
  } else if (state.stop_path !== true) {
    if (arm && !stopped && !held) mode = "SILENT"; // the last message says nothing about the present
    kind = arm ? "stopped" : "unknown";
    why = "A stop would not arrive: arm_node is silent. Use the robot's own stop.";
  }
  const current = line === "live" && state.stop_path === true;
  byId("safety").className = `safety ${kind}${line === "lost" || line === "old" ? " lost" : ""}`;
  document.body.classList.toggle("stale", line !== "live"); // the style sheet hides all that would look present
  setText("safety-mode", mode);
  setText("safety-why", why === "released" ? "" : why);
  setText("safety-age", arm && !current && Number.isFinite(age) ? `Last known: ${last}, ${Math.round(age)} s ago.` : "");
  setText("stop-text", stopped && line === "live" ? "STOPPED" : "STOP");
  byId("release").hidden = line !== "live" || !(stopped || held);
  if (byId("release").hidden) byId("guard").hidden = true;
}

export function arm(content) {
  const joints = content.joints_deg.map((value) => value.toFixed(1)).join(", ");
  list("arm-numbers", [
    ["tool", `x ${content.tcp_mm[0].toFixed(1)}, y ${content.tcp_mm[1].toFixed(1)}, z ${content.tcp_mm[2].toFixed(1)} mm in base_link`],
    ["joints", `${joints} °, from the base to wrist 3`],
    ["gripper", `${content.opening_mm.toFixed(1)} mm between the fingers`],
  ]);
}

// An outdated picture must look so.
export function armSeen(seen) {
  byId("arm").classList.toggle("old", !seen);
  byId("arm-numbers").classList.toggle("old", !seen);
  setText("arm-silent", seen ? "" : "no joint states arrive: this drawing is outdated");
}

export function scene(content) {
  setText("task", content.instruction ? `${content.instruction}${content.success ? " – done" : ""}` : "");
}

export function answers(state) {
  const shown = ["reference", "distorted"].map((which) => [which, state[`answer/${which}`]]).filter(([, one]) => one);
  setText("question", shown.length ? shown[0][1].question : "");
  list("answers", shown.length ? shown.map(([which, one]) => [which, `${one.answer || "(nothing)"}  – ${one.model}, ${fixed(one.latency_ms, 0)} ms`])
    : [["", "no model was asked yet"]]);
}

export function actions(state) {
  const chunks = ["distorted", "reference"].map((which) => [which, state[`chunk/${which}`]]).filter(([, one]) => one);
  const heads = ["#", "x mm", "y mm", "z mm", "rx °", "ry °", "rz °", "gripper"].map((title) => [title, ""]);
  byId("actions").replaceChildren(
    ...chunks.map(([which, one]) => {
      const note = one.done ? ", done" : one.total > one.actions.length ? `, first ${one.actions.length}` : "";
      const caption = `${which}: ${one.model}, ${one.total} steps of ${one.step_s.toFixed(2)} s in ${one.frame || "?"}, ${fixed(one.latency_ms, 0)} ms${note}`;
      return table(caption, heads, one.actions.map((row, i) => [i + 1, ...row.slice(0, 6).map((value) => fixed(value, 1)), fixed(row[6], 2)]));
    }),
  );
  if (!chunks.length) byId("actions").textContent = "no model has decided yet";
}

export function results(rows) {
  const heads = [["agent", "text"], ["task", "text"], ["distortion", "text"], ["outcome", "text"], ["cognition", ""], ["decision", ""], ["execution", ""]];
  byId("results").replaceChildren(
    table("", heads, rows.map((row) => {
      const outcome = element("td", row.outcome.toLowerCase().replace("_", " "), `text ${row.outcome === "SUCCESS" ? "ok" : "wrong"}`);
      outcome.title = row.why;
      const distortion = row.level ? `${row.distortion} ${row.level}` : "reference";
      return [row.agent, `${row.task} ${row.seed}`, distortion, outcome, fixed(row.cognition, 2), fixed(row.decision, 2), fixed(row.execution, 1)];
    })),
  );
}

const SVG = "http://www.w3.org/2000/svg";
const BAR_PX = 120;

// A rating and two standard deviations to either side, on the scale of the whole board.
function interval(one, low, high) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${BAR_PX} 14`);
  svg.setAttribute("class", "interval");
  svg.setAttribute("aria-hidden", "true"); // the numbers stand beside it
  const x = (value) => 4 + ((BAR_PX - 8) * (Math.min(high, Math.max(low, value)) - low)) / Math.max(1, high - low);
  const draw = (tag, attributes) => {
    const made = document.createElementNS(SVG, tag);
    Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
    svg.append(made);
  };
  const spread = 2 * (one.deviation || 0);
  draw("line", { x1: x(one.mean - spread), x2: x(one.mean + spread), y1: 7, y2: 7 });
  draw("circle", { cx: x(one.mean), cy: 7, r: 3.5 });
  const cell = element("td");
  cell.append(svg);
  return cell;
}

// The board as it grows: ratings, and the successes that this page has seen.
export function ratings(content, tally) {
  setText("board-of", content.experiment);
  const heads = [["", ""], ["agent", "text"], ["rating", ""], ["±", ""], ["±2 deviations", ""], ["success", ""], ["matches", ""]];
  const rated = content.agents.filter((one) => one.mean !== null);
  const low = Math.min(...rated.map((one) => one.mean - 2 * (one.deviation || 0)));
  const high = Math.max(...rated.map((one) => one.mean + 2 * (one.deviation || 0)));
  const rows = content.agents.map((one, i) => {
    const [trials, successes] = tally?.[one.id] || [0, 0];
    const bar = one.mean === null ? "–" : interval(one, low, high);
    return [i + 1, one.id, fixed(one.mean, 0), one.deviation ? fixed(one.deviation, 0) : "–", bar, trials ? `${successes} of ${trials}` : "–", one.matches];
  });
  byId("ratings").replaceChildren(table("", heads, rows));
}

export function presses(rows) {
  byId("presses").replaceChildren(
    ...rows.map((one) => {
      const how = `${one.accepted ? "" : "FAILED: "}${one.answer} (${one.took_ms.toFixed(0)} ms)`;
      const what = one.detail ? `${one.press} ${one.detail}` : one.press;
      return element("li", `${one.at_utc.slice(11, 19)} UTC  ${one.who}: ${what} – ${how}`, one.accepted ? "" : "wrong");
    }),
  );
}

// Requests of the cell before a trial.
export function arranging(content) {
  byId("arrange").hidden = !content.trial_id;
  setText("arrange-text", content.instruction);
  byId("picture-layout").hidden = content.trial_id === "home";
}

export function layout() {
  return { canvas: byId("picture-layout") };
}

// The pictures of every camera, before and after; the canvases by stream. `onZoom` is called with a picture that is pressed.
export function cameras(names, onZoom) {
  const canvases = {};
  byId("cameras").classList.toggle("many", names.length > 4);
  const pairs = names.map((name) => {
    const pair = element("div", "", "pair");
    for (const which of ["before", "after"]) {
      const figure = element("figure");
      const canvas = element("canvas");
      canvas.id = `picture-${name}-${which}`;
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", `camera ${name}, ${which} distortion`);
      const caption = element("figcaption", `${name}, ${which}: waiting`);
      const picture = { canvas, caption, figure, name, which, seen: 0, count: 0, stampS: 0 };
      canvases[`${name}/${which}`] = picture;
      const button = element("button", "⤢", "enlarge");
      button.type = "button";
      button.setAttribute("aria-label", `enlarge ${name}, ${which}`);
      for (const pressed of [button, canvas]) pressed.addEventListener("click", () => picture.seen && onZoom(picture));
      figure.append(canvas, caption, button);
      pair.append(figure);
    }
    pair.append(qualityRow(name));
    return pair;
  });
  byId("cameras").replaceChildren(...(pairs.length ? pairs : [element("p", "no camera is shown", "quiet")]));
  return canvases;
}

// A place for the quality of a camera's distorted images: words, and a bar where the values have two ends.
function qualityRow(name) {
  const row = element("div", "", "quality");
  row.id = `quality-${name}`;
  row.hidden = true;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 100 8");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true"); // the words stand beside it
  for (const [part, height] of [["whole", 8], ["bar", 8], ["least", 8]]) {
    const made = document.createElementNS(SVG, "rect");
    made.setAttribute("class", part);
    made.setAttribute("height", height);
    made.setAttribute("width", part === "least" ? 0.6 : 100);
    svg.append(made);
  }
  row.append(element("p"), svg);
  return row;
}

// How good the distorted images are now; `old` if their picture is of another time.
export function quality(name, content, old) {
  const row = byId(`quality-${name}`);
  row.hidden = !content || old;
  if (row.hidden) return;
  const bound = content.minimum ? `; the arm refuses ${content.lower_is_better ? "above" : "below"} ${content.minimum}` : "";
  const refused = content.refused ? ": refused" : "";
  const text = `${name}: quality ${fixed(content.value, 2)}${refused} (${content.metric}, ${content.lower_is_better ? "lower" : "higher"} is better${bound})`;
  const [words, svg] = row.children;
  if (words.textContent !== text) words.textContent = text;
  row.classList.toggle("refused", content.refused);
  svg.style.display = content.share === null ? "none" : "";
  const [, bar, least] = svg.children;
  bar.setAttribute("width", 100 * (content.share ?? 0));
  least.setAttribute("x", 100 * (content.minimum_share ?? 0) - 0.3);
  least.style.display = content.minimum ? "" : "none";
}

const OLD_PICTURE_MS = 3000;
const SAME_INSTANT_S = 0.5;

// The words under a picture, and whether it is current. One that shows the instant at which the cell stands is, however
// long ago it came: while the clock of a simulated cell stands, nothing moves.
export function caption(picture, state, now) {
  const title = `${picture.name}, ${picture.which}`;
  if (document.body.classList.contains("stale")) return [`${title}: not connected`, true];
  if (!picture.seen) return [`${title}: waiting for ${picture.which === "before" ? "the camera" : "distortion_node"}`, false];
  const done = state.distortion?.[picture.name];
  const good = state.quality?.[picture.name];
  const howGood = good ? `, quality ${fixed(good.value, 2)}${good.refused ? ": refused" : ""}` : "";
  const how = done && done.level ? `${done.name} ${done.level}` : "not distorted";
  const what = picture.which === "before" ? "before" : `${how}${howGood}`;
  if (now - picture.seen < OLD_PICTURE_MS) return [`${picture.name}: ${what}`, false];
  const stands = state.arm_seen && state.arm && Math.abs(state.arm.stamp_s - picture.stampS) < SAME_INSTANT_S;
  if (stands) return [`${picture.name}: ${what}, the cell stands`, false];
  return [`${picture.name}: no picture for ${Math.round((now - picture.seen) / 1000)} s`, true];
}
