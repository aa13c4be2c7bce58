// The page of a rater: who is there, what is asked next, what is saved.
//
// A protocol's form is a module, protocols/NAME.js:
//
//   export function show(root, slot, tools) -> { read, focus, keys }     of a rater
//   export function review(root, slot, tools) -> { read, focus, keys }   of an expert, if it differs
//
//   root   an empty <section>. A key that is pressed while nothing has the focus arrives at root as keydown, so a form
//          listens there and nowhere else; a form that used the key calls event.preventDefault(). Enter is the page's:
//          it saves (in a textarea with Ctrl), U takes back, ? shows the keys.
//   slot   { number, view, media }: view as the protocol's class made it, media[role] loaded already as
//          { role, kind, url (of this page), width, height, frames, rate_hz }.
//   tools  submit(): as if Save was pressed. changed(): the answer may be complete now, or not any more.
//          image(media, alt): an <img>. player(parent, [media ...], labels): a ReelPlayer, see reel.js.
//          say(text): read out by a screen reader.
//   read   () -> the answer, or null while it is not complete.
//   focus  () puts the focus where work begins.
//   keys   [[key, label], ...] for the list of keys.
//
// Texts go into the page by textContent alone.

import { Clock } from "./clock.js";
import { getBlob, getJson, post, setToken, Stranger } from "./http.js";
import { Preload } from "./preload.js";
import { newId, NotNow, Queue, Refused } from "./queue.js";

const WAIT_MS = 3000;
const KEYS = [["Enter", "save and go on (in a long text: Ctrl + Enter)"], ["U", "take back the last answer"], ["?", "these keys"]];

const at = (id) => document.getElementById(id);
const clock = new Clock();
const preload = new Preload(getBlob);

let session = null;
let queue = null;
let module = null;
let reels = null; // the module reel.js, where an item has a reel
let players = []; // of the slot that is shown
let work = null; // as the server said last
let slots = []; // open ones, the first is asked now
let answered = new Set(); // numbers answered here that the server's list may still have
let history_ = []; // {slot, id} of answers given on this page, for undo
let form = null; // of the slot that is shown
let shown = null; // that slot
let begun = false; // the instructions were read
let changes = 0; // undos and refusals so far: a list that was asked for before one is not used
let name = ""; // entered here, to come back by it

function tell(text) {
  at("alarm").textContent = text;
  at("alarm").hidden = !text;
}

function message(title, text, { contact = false, register = false, begin = false } = {}) {
  at("work").hidden = true;
  at("message").hidden = false;
  at("message-title").textContent = title;
  at("message-text").textContent = text;
  at("message-contact").textContent = session?.contact ? `Questions, or to withdraw your answers: ${session.contact}` : "";
  at("message-contact").hidden = !contact || !session?.contact;
  at("register").hidden = !register;
  at("message-buttons").hidden = !begin;
  (register ? at("name") : begin ? at("begin") : at("message-title")).focus?.();
}

// --- who is there -------------------------------------------------------------------------------------------------

async function enter() {
  try {
    session = await getJson("/api/session");
  } catch (error) {
    message("No connection", "The server does not answer. This page tries again by itself.");
    setTimeout(enter, WAIT_MS);
    return;
  }
  if (session.title) document.title = at("title").textContent = session.title;
  if (session.access === "operator") {
    location.replace(`/operator${location.hash}`);
  } else if (session.access === "token") {
    message("A link is needed", "Open this page by the link that you were given: it ends in # and a token.");
  } else if (session.access === "register") {
    if (name) await register(name); // the server was started again
    else message(session.protocol_title, session.instructions, { contact: true, register: true });
  } else {
    await arrive();
  }
}

async function register(wanted) {
  tell("");
  try {
    const { token } = await post("/api/register", { name: wanted });
    name = wanted;
    setToken(token);
    await enter();
  } catch (error) {
    tell(error.message);
  }
}

async function arrive() {
  at("who").textContent = `You are ${session.rater.id}`;
  module ??= await import(`./protocols/${session.protocol}.js`);
  queue ??= new Queue(session.rater.key, send, { waiting: showLine, saved, refused });
  at("undo").hidden = at("read-again").hidden = at("how-far").hidden = false;
  queue.flush();
  await refresh();
}

// --- what is asked --------------------------------------------------------------------------------------------------

let refreshing = null;

// Ask the server what is next; calls that come while one is under way wait for one more.
function refresh() {
  if (refreshing) {
    refreshing.again = true;
    return refreshing.done;
  }
  const mine = { again: false };
  mine.done = (async () => {
    do {
      mine.again = false;
      await refreshOnce();
    } while (mine.again);
    refreshing = null;
  })();
  refreshing = mine;
  return mine.done;
}

async function refreshOnce() {
  const before = changes;
  const unsent = new Set(queue.waiting().map((operation) => operation.number));
  answered = unsent;
  let told;
  try {
    told = await getJson("/api/work");
  } catch (error) {
    if (error instanceof Stranger) return enter();
    if (!(error instanceof NotNow)) tell(error.message);
    showLine();
    later();
    return;
  }
  if (before !== changes) {
    refreshing.again = true;
    return;
  }
  work = told;
  slots = told.slots.filter((slot) => !answered.has(slot.number));
  proceed();
}

// Load the media of the slots to come; keep those of the last answer, for undo.
function keepMedia() {
  const last = history_.at(-1)?.slot;
  const known = slots.some((slot) => slot.number === last?.number);
  preload.keep(last && !known ? [...slots, last] : slots);
}

let timer = null;

function later() {
  clearTimeout(timer);
  timer = setTimeout(refresh, WAIT_MS);
}

// Show the slot that is next, or why there is none.
function proceed() {
  showLine();
  keepMedia();
  if (slots.length) {
    if (!begun && !work.progress.done && !history_.length && !queue.waiting().length) return instructions();
    begun = true;
    if (!shown || !slots.some((slot) => slot.number === shown.number)) showSlot(slots[0]);
    return;
  }
  shown = form = null;
  if (queue.waiting().length) {
    message("Saving", "Your answers are kept in this browser until the server has them.");
    later();
  } else if (work.state === "working") {
    refresh();
  } else {
    const titles = { waiting: "Please wait", done: "Done", closed: "This study has ended for you" };
    message(titles[work.state], work.reason, { contact: true });
    if (work.state === "waiting") later();
  }
}

function instructions() {
  const opened = at("message").hidden || at("message-buttons").hidden;
  if (opened) message(session.protocol_title, session.instructions, { contact: true, begin: true });
}

async function showSlot(slot) {
  shown = slot;
  form = null;
  let media;
  try {
    if (!preload.ready(slot.number)) at("form").inert = true;
    if (slot.media.some((medium) => medium.kind === "reel")) reels ??= await import("./reel.js");
    media = await preload.media(slot.number);
  } catch (error) {
    if (shown === slot) tell(error.message);
    return;
  }
  if (shown !== slot) return;
  players.forEach((one) => one.close());
  players = [];
  const root = document.createElement("section"); // a new one each time, so that listeners of the old one have no effect
  root.className = "question";
  root.dataset.number = slot.number;
  root.setAttribute("aria-label", "The question");
  at("form").replaceChildren(root);
  at("form").inert = false;
  at("message").hidden = true;
  at("work").hidden = false;
  const make = session.rater.role === "expert" && module.review ? module.review : module.show;
  form = make(root, { number: slot.number, view: slot.view, media }, tools);
  at("save").disabled = form.read() === null;
  window.scrollTo(0, 0);
  form.focus();
  clock.start();
  performance.mark("merton-shown", { detail: slot.number });
}

const tools = {
  submit,
  changed() {
    if (form) at("save").disabled = form.read() === null;
  },
  image(medium, alt) {
    const image = new Image(medium.width, medium.height);
    image.src = medium.url;
    image.alt = alt;
    return image;
  },
  player(parent, media, labels = []) {
    const made = new reels.ReelPlayer(parent, media, { labels });
    players.push(made);
    return made;
  },
  say(text) {
    at("line").textContent = text;
  },
};

// --- what is saved --------------------------------------------------------------------------------------------------

function submit() {
  const answer = form?.read() ?? null;
  if (answer === null || at("form").inert) return;
  tell("");
  const slot = shown;
  const operation = { kind: "answer", id: newId(), number: slot.number, answer, seconds: clock.seconds() };
  history_.push({ slot, id: operation.id });
  answered.add(slot.number);
  slots = slots.filter((one) => one.number !== slot.number);
  if (work) work.progress.done++;
  at("form").inert = true; // stays as it is until the next item or a refusal
  if (slots.length) showSlot(slots[0]);
  queue.add(operation);
  showLine();
}

function undo() {
  if (at("undo").disabled) return;
  tell("");
  changes++;
  const last = history_.pop();
  if (!last || !queue.remove(last.id)) queue.add({ kind: "undo", id: newId() });
  if (last) {
    answered.delete(last.slot.number);
    slots = [last.slot, ...slots];
    work.progress.done--;
    keepMedia();
    showSlot(last.slot);
    showLine();
  }
  if (!queue.waiting().length) refresh();
}

async function send(operation) {
  const { kind, ...body } = operation;
  try {
    await post(kind === "undo" ? "/api/undo" : "/api/answers", body);
  } catch (error) {
    if (!(error instanceof Stranger)) throw error;
    if (!name) tell(error.message);
    else await register(name);
    throw new NotNow(error.message);
  }
}

function saved(operation) {
  if (operation.kind === "undo") changes++;
  if (!queue.waiting().length) refresh();
}

function refused(operation, why) {
  changes++;
  tell(`Not saved: ${why}`);
  const given = history_.find((one) => one.id === operation.id);
  history_ = history_.filter((one) => one.id !== operation.id);
  if (given && shown === given.slot) at("form").inert = false; // what was entered stands there still
  else shown = null;
  refresh();
}

function showLine(waiting = queue.waiting().length, elsewhere = false) {
  at("line").textContent = waiting && queue.failures ? `No connection: ${waiting} waiting to be saved` : "";
  at("line").className = waiting && queue.failures ? "lost" : "";
  if (elsewhere && !waiting) refresh(); // another tab has saved something
  if (!work) return;
  const { done, total, seconds_left } = work.progress;
  at("progress").max = Math.max(total, 1);
  at("progress").value = done;
  at("progress-text").textContent = `${done} of ${total}${timeLeft(seconds_left)}`;
  at("undo").disabled = !(work.last || history_.length);
}

function timeLeft(seconds) {
  if (seconds === null || seconds <= 0) return "";
  return seconds < 90 ? ", about a minute left" : `, about ${Math.round(seconds / 60)} min left`;
}

// --- buttons and keys -----------------------------------------------------------------------------------------------

function showKeys() {
  const rows = [...(form?.keys ?? []), ...(players.length ? reels.REEL_KEYS : []), ...KEYS].flatMap(([key, label]) => {
    const term = document.createElement("dt");
    const text = document.createElement("dd");
    term.textContent = key;
    text.textContent = label;
    return [term, text];
  });
  at("key-list").replaceChildren(...rows);
  at("keys").showModal();
}

function isWriting(target) {
  return target.matches("textarea, select, input:not([type=radio]):not([type=checkbox]), [contenteditable]");
}

document.addEventListener("keydown", (event) => {
  const target = event.target;
  if (event.defaultPrevented || at("keys").open || event.altKey || event.metaKey) return;
  const writing = isWriting(target);
  if (event.key === "Enter" && form && !target.closest("button, a, summary, select, [role=button]")) {
    if (target.matches("textarea") && !event.ctrlKey) return;
    event.preventDefault();
    if (!event.repeat) submit();
  } else if (event.ctrlKey || writing) {
    return;
  } else if (event.key === "?") {
    event.preventDefault();
    showKeys();
  } else if (event.key.toLowerCase() === "u" && !event.repeat && !at("undo").hidden) {
    event.preventDefault();
    undo();
  } else if (form && !at("form").contains(target) && !target.closest("button, a, summary, dialog")) {
    const { key, code, shiftKey, repeat } = event;
    const copy = new KeyboardEvent("keydown", { key, code, shiftKey, repeat, bubbles: false, cancelable: true });
    if (!at("form").firstChild.dispatchEvent(copy)) event.preventDefault();
  }
});

at("save").addEventListener("click", submit);
at("undo").addEventListener("click", undo);
at("help").addEventListener("click", showKeys);
at("read-again").addEventListener("click", () => {
  begun = false;
  message(session.protocol_title, session.instructions, { contact: true, begin: true });
});
at("begin").addEventListener("click", () => {
  begun = true;
  if (shown && form) {
    at("message").hidden = true;
    at("work").hidden = false;
    form.focus();
  } else {
    shown = null;
    proceed();
  }
});
at("register").addEventListener("submit", (event) => {
  event.preventDefault();
  register(at("name").value);
});
window.addEventListener("hashchange", () => location.reload());
enter();
