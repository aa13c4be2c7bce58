// The operator's page: one WebSocket for its content, one request for every press.

import { ArmView } from "/page/arm.js";
import * as plots from "/page/plots.js";
import { progress, recording } from "/page/progress.js";
import * as show from "/page/show.js";
import * as zoom from "/page/zoom.js";

const SILENT_MS = 3000; // the server sends an update every second
const TRIES = 3;
const byId = (id) => document.getElementById(id);

const state = {};
const view = new ArmView(byId("arm"));
let pictures = {};
let lastUpdateAt = -Infinity;
let stopPathAt = -Infinity; // when the node last looked whether a stop would arrive
let currentAt = -Infinity; // when the safety state was last known to be that of the present
let quietSince = 0; // of a connection: its beginning, or its last update
let session = { needs_token: false, allowed: true, who: "" };
let token = takeToken();
let name = localStorage.getItem("merton-name") || "";
let waitingSince = 0;
let progressAt = 0;
let wasLive = false;
let asking = false; // for a name
let afterName = null; // what the person wanted when the name was asked for

// A token may stand behind the # of the address, which is never sent; it is removed from address bar and history.
function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("merton-token", given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem("merton-token") || "";
}

// Presses

async function send(path, content, tries = 1) {
  const headers = { "Content-Type": "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  const body = JSON.stringify({ who: name, ...content });
  for (;;) {
    tries -= 1;
    let answer;
    try {
      const response = await fetch(path, { method: "POST", headers, body, cache: "no-store", signal: AbortSignal.timeout(4000) });
      const reply = await response.json();
      answer = { done: response.ok, status: response.status, text: reply.answer || reply.detail || "", logged: reply.logged !== false };
    } catch (error) {
      answer = { done: false, status: 0, text: "this page does not reach its server", logged: true };
    }
    if (answer.done || tries <= 0 || ![0, 503, 504].includes(answer.status)) return answer;
  }
}

function alarm(text) {
  byId("alarm").hidden = !text;
  show.setText("alarm", text);
}

async function stop() {
  byId("guard").hidden = true;
  show.setText("stop-text", "STOPPING");
  const answer = await send("/api/stop", {}, TRIES);
  if (!answer.done) alarm(`THE STOP IS NOT CONFIRMED: ${answer.text}. Use the emergency stop of the robot.`);
  else alarm(answer.logged ? "" : "The press was not logged: see the log of monitor_node.");
  showSafety();
}

async function pressed(path, content) {
  const answer = await send(path, content);
  alarm(!answer.done ? answer.text : answer.logged ? "" : "The press was not logged: see the log of monitor_node.");
}

let pointerAt = -Infinity;
byId("stop").addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  pointerAt = performance.now();
  stop(); // when the button goes down
});
byId("stop").addEventListener("click", () => {
  if (performance.now() - pointerAt > 2000) stop(); // from the keyboard or a screen reader; a press of a pointer has sent it already
});

function stopsByKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey) return false;
  return event.key === "Escape" || (event.key === " " && event.target.tagName !== "INPUT");
}
window.addEventListener("keydown", (event) => {
  if (!stopsByKey(event)) return;
  event.preventDefault();
  event.stopPropagation();
  if (!event.repeat) stop();
}, true);
window.addEventListener("keyup", (event) => {
  if (stopsByKey(event)) event.preventDefault(); // else it would press the button in focus as well
}, true);

// A press that needs a name asks for it first. STOP needs none.
function named(then) {
  if (name || session.who) return then();
  afterName = then;
  askName(true);
}

byId("release").addEventListener("click", () => named(() => {
  if (byId("release").hidden) return; // it was released meanwhile
  byId("guard").hidden = false;
  byId("guard-no").focus();
}));
byId("guard-no").addEventListener("click", () => (byId("guard").hidden = true));
byId("guard-yes").addEventListener("click", () => {
  byId("guard").hidden = true;
  pressed("/api/reset", {});
});
document.querySelectorAll("[data-verdict]").forEach((button) =>
  button.addEventListener("click", () => {
    const content = { trial_id: state.waiting.trial_id, verdict: button.dataset.verdict };
    named(() => pressed("/api/confirm", content));
  }),
);

document.querySelectorAll("[data-arranged]").forEach((button) =>
  button.addEventListener("click", () => {
    const content = { trial_id: state.arranging.trial_id, verdict: button.dataset.arranged };
    if (name || session.who) return pressed("/api/arranged", content);
    named(() => button.focus()); // "all clear" is said again once the name is known: it holds for the moment of its press
  }),
);
byId("record").addEventListener("click", () => {
  const wanted = Boolean(byId("record").dataset.wanted);
  named(() => pressed("/api/record", { wanted }));
});

// Name and token

function askName(wanted) {
  asking = wanted;
  showSession();
  if (wanted) byId("name").focus();
}

function showSession() {
  const barred = session.needs_token && !session.allowed;
  const who = session.who || name;
  byId("enter").hidden = !barred && !asking;
  byId("token-form").hidden = !barred;
  byId("name-form").hidden = barred || Boolean(session.who);
  byId("who-is").replaceChildren();
  if (barred || !who) return;
  byId("who-is").append(who, " ");
  if (session.who) return;
  const change = show.element("button", "change");
  change.type = "button";
  change.addEventListener("click", () => askName(true));
  byId("who-is").append(change);
}

byId("name-form").addEventListener("submit", (event) => {
  event.preventDefault();
  name = byId("name").value.trim();
  localStorage.setItem("merton-name", name);
  askName(false);
  const then = afterName;
  afterName = null;
  if (name) then?.();
});
byId("name-later").addEventListener("click", () => {
  afterName = null;
  askName(false);
});
byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value.trim();
  sessionStorage.setItem("merton-token", token);
  connect();
});

// Content

function showSafety() {
  const now = performance.now();
  const silent = now - lastUpdateAt > SILENT_MS;
  const line = silent ? (wasLive ? "lost" : "connecting") : now - stopPathAt > SILENT_MS ? "old" : "live";
  if (line === "live" && state.safety && state.stop_path === true) currentAt = stopPathAt;
  show.safety(state, line, (now - currentAt) / 1000);
  progress(state.progress, (now - progressAt) / 1000, line);
  for (const picture of Object.values(pictures)) if (picture.figure) showCaption(picture);
  if (line === "lost" || line === "old") zoom.close();
}

const onSection = {
  cameras: (names) => (pictures = { ...show.cameras(names, zoom.open), layout: show.layout() }),
  cell: (content) => { view.cell = content; view.redraw(); },
  arm: (content) => { view.arm = content; view.redraw(); show.arm(content); },
  arm_seen: show.armSeen,
  path: (content) => { view.path = content; view.redraw(); },
  scene: (content) => { view.objects = content.objects.filter((o) => o.at.every((v) => v !== null)); view.redraw(); show.scene(content); },
  results: show.results,
  ratings: (content) => show.ratings(content, state.tally),
  tally: (content) => state.ratings && show.ratings(state.ratings, content),
  board: (text) => { show.setText("board", text); byId("board-whole").hidden = !text; },
  progress: () => { progressAt = performance.now(); },
  motion: plots.motion,
  timeline: plots.timeline,
  recording,
  presses: show.presses,
  arranging: (content) => show.arranging(content),
  waiting: () => { waitingSince = performance.now(); showWaiting(); },
};

function apply(sections) {
  Object.assign(state, sections);
  for (const [section, content] of Object.entries(sections)) onSection[section]?.(content);
  if (Object.keys(sections).some((section) => section.startsWith("answer/"))) show.answers(state);
  if (Object.keys(sections).some((section) => section.startsWith("chunk/"))) show.actions(state);
  showSafety();
}

function showWaiting() {
  const waiting = state.waiting;
  byId("confirm").hidden = !waiting || !waiting.trial_id;
  if (byId("confirm").hidden) return;
  show.setText("confirm-task", waiting.instruction);
  show.setText("confirm-trial", waiting.trial_id);
}

function showCaption(picture) {
  const [text, old] = show.caption(picture, state, performance.now());
  if (picture.caption.textContent !== text) picture.caption.textContent = text;
  picture.figure.classList.toggle("old", old);
  if (picture.which === "after") show.quality(picture.name, state.quality?.[picture.name], old);
  zoom.update(picture);
}

async function paint(frame, bytes) {
  const picture = pictures[frame.stream];
  if (!picture) return;
  const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/jpeg" }));
  const { canvas } = picture;
  if (canvas.width !== bitmap.width || canvas.height !== bitmap.height) {
    canvas.width = bitmap.width;
    canvas.height = bitmap.height;
  }
  canvas.getContext("2d").drawImage(bitmap, 0, 0);
  bitmap.close();
  if (!picture.figure) return;
  picture.seen = performance.now();
  picture.stampS = frame.stamp_ns / 1e9;
  canvas.dataset.stamp = frame.stamp_ns;
  canvas.dataset.count = picture.count += 1;
  showCaption(picture);
}

async function onUpdate(buffer) {
  lastUpdateAt = quietSince = performance.now();
  wasLive = true;
  const length = new DataView(buffer).getUint32(0);
  const update = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  stopPathAt = update.stop_path_age_s === null ? -Infinity : lastUpdateAt - 1000 * update.stop_path_age_s;
  apply(update.state);
  let at = 4 + length;
  await Promise.all(update.frames.map((frame) => {
    const bytes = new Uint8Array(buffer, at, frame.bytes);
    at += frame.bytes;
    return paint(frame, bytes).catch(() => {}); // a malformed picture must not cost the rest of the update
  }));
}

function onLine(kind, text) {
  byId("line").className = `dot ${kind}`;
  show.setText("line", text);
}

// Connection

let socket = null;
let retryTimer = 0;

async function connect() {
  clearTimeout(retryTimer);
  if (socket) { socket.onclose = null; socket.close(); socket = null; }
  try {
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    session = await (await fetch("/api/session", { headers, cache: "no-store", signal: AbortSignal.timeout(4000) })).json();
  } catch (error) {
    return retryLater();
  }
  showSession();
  if (!session.allowed) return onLine("lost", "a token is needed");
  const mine = (socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`));
  mine.binaryType = "arraybuffer";
  quietSince = performance.now();
  mine.onopen = () => mine.send(JSON.stringify({ token }));
  mine.onmessage = async (event) => {
    await onUpdate(event.data);
    onLine("live", "live");
    if (mine.readyState === WebSocket.OPEN) mine.send("ready");
  };
  mine.onclose = retryLater;
}

function retryLater() {
  onLine("lost", "connection lost");
  lastUpdateAt = -Infinity;
  showSafety();
  clearTimeout(retryTimer);
  retryTimer = setTimeout(connect, 1000);
}

setInterval(() => {
  const now = performance.now();
  if (socket && now - quietSince > SILENT_MS) { socket.onclose = null; socket.close(); socket = null; retryLater(); }
  if (state.waiting?.trial_id && state.waiting.limit_s) {
    byId("confirm-left").textContent = `${Math.max(0, Math.round(state.waiting.limit_s - (now - waitingSince) / 1000))} s left`;
  }
  showSafety();
}, 500);

byId("name").value = name;
show.answers(state);
show.actions(state);
connect();
