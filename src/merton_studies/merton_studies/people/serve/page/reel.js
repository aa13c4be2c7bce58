// Moving pictures that are stepped by frames, slowed, looped, and shown side by side at the same moment.
// The file format: merton/people/media/reel.py.

const MAGIC = "MERTREEL";
const HEAD_BYTES = 12; // the magic and the length of the header
const CACHE_BYTES = 128e6; // of decoded frames, of all reels of a player
const AHEAD = 6; // frames that are decoded before they are due
export const SPEEDS = [0.1, 0.25, 0.5, 1, 2];
export const REEL_KEYS = [["Space", "play or pause"], [", .", "a frame back, a frame on"], ["s", "slower, then normal again"], ["l", "loop"], ["Home", "to the start"]];

// The header of a reel, and the Blob of each frame by its number.
export async function openReel(media) {
  const blob = media.blob ?? await (await fetch(media.url)).blob();
  const head = await blob.slice(0, HEAD_BYTES).arrayBuffer();
  const magic = new TextDecoder().decode(head.slice(0, 8));
  if (head.byteLength < HEAD_BYTES || magic !== MAGIC) throw new Error("this moving picture cannot be shown");
  const start = HEAD_BYTES + new DataView(head).getUint32(8, true);
  const header = JSON.parse(await blob.slice(HEAD_BYTES, start).text());
  const frame = (number) => {
    const [at, length] = header.frames[number];
    return blob.slice(start + at, start + at + length, "image/jpeg");
  };
  return { width: header.width, height: header.height, rateHz: header.rate_hz, frames: header.frames.length, frame };
}

// Decoded frames of one reel; the oldest go first.
class Frames {
  constructor(reel, most) {
    [this.reel, this.most] = [reel, Math.max(2 * AHEAD, Math.floor(most / (4 * reel.width * reel.height)))];
    [this.ready, this.coming, this.closed] = [new Map(), new Map(), false];
  }

  get(number) {
    const found = this.ready.get(number);
    if (found) {
      this.ready.delete(number);
      this.ready.set(number, found); // the youngest now
    }
    return found;
  }

  load(number) {
    if (number < 0 || number >= this.reel.frames) return null;
    if (this.ready.has(number)) return Promise.resolve();
    if (!this.coming.has(number)) this.coming.set(number, this.decode(number));
    return this.coming.get(number);
  }

  async decode(number) {
    try {
      const picture = await createImageBitmap(this.reel.frame(number));
      if (this.closed) return picture.close();
      this.ready.set(number, picture);
      while (this.ready.size > this.most) {
        const [oldest] = this.ready.keys();
        this.ready.get(oldest).close();
        this.ready.delete(oldest);
      }
    } finally {
      this.coming.delete(number);
    }
    return undefined;
  }

  close() {
    this.closed = true;
    for (const picture of this.ready.values()) picture.close();
    this.ready.clear();
  }
}

const make = (kind, className, text = "") => {
  const made = document.createElement(kind);
  if (className) made.className = className;
  made.textContent = text;
  return made;
};

// A group of reels with one clock. Events: "ready", "frame" (after each drawing), "ended", "error".
// `media`: [{url or blob, width, height}, ...]; `labels`: a text above each picture, none for one alone.
export class ReelPlayer extends EventTarget {
  constructor(parent, media, { labels = [], keyboard = true } = {}) {
    super();
    [this.time, this.speed, this.loop, this.playing, this.shown] = [0, 1, false, false, new Set()];
    this.root = make("div", "reel-player");
    this.root.setAttribute("role", "group");
    this.root.setAttribute("aria-label", labels.length ? `Moving pictures: ${labels.join(", ")}` : "Moving picture");
    this.addPictures(media, labels);
    this.addControls();
    parent.append(this.root);
    this.onKey = (event) => { if (this.key(event)) event.preventDefault(); };
    if (keyboard) document.addEventListener("keydown", this.onKey);
    this.onHide = () => { if (document.hidden) this.pause(); };
    document.addEventListener("visibilitychange", this.onHide);
    this.ready = this.open(media);
    this.ready.catch((error) => {
      this.position.textContent = "The moving picture could not be loaded.";
      this.dispatchEvent(new CustomEvent("error", { detail: error }));
    });
  }

  addPictures(media, labels) {
    const row = make("div", "reel-pictures");
    this.canvases = media.map((one, index) => {
      const [figure, canvas] = [make("figure", "reel"), make("canvas")];
      [canvas.width, canvas.height] = [one.width, one.height];
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", labels[index] ?? "Moving picture");
      if (labels[index]) figure.append(make("figcaption", "", labels[index]));
      figure.append(canvas);
      row.append(figure);
      return canvas;
    });
    this.root.append(row);
  }

  addControls() {
    const bar = make("div", "reel-controls");
    const button = (text, label, act) => {
      const made = make("button", "", text);
      made.type = "button";
      if (label) made.setAttribute("aria-label", label);
      made.addEventListener("click", act);
      bar.append(made);
      return made;
    };
    this.playButton = button("Play", "", () => this.toggle());
    button("◀", "One frame back", () => this.step(-1));
    button("▶", "One frame on", () => this.step(1));
    this.loopButton = button("Loop", "", () => this.setLoop(!this.loop));
    this.loopButton.setAttribute("aria-pressed", "false");
    this.speedChoice = make("select");
    this.speedChoice.setAttribute("aria-label", "Speed");
    for (const speed of SPEEDS) this.speedChoice.append(new Option(`${speed}×`, speed, speed === 1, speed === 1));
    this.speedChoice.addEventListener("change", () => this.setSpeed(Number(this.speedChoice.value)));
    this.slider = make("input", "reel-slider");
    [this.slider.type, this.slider.min, this.slider.max, this.slider.value] = ["range", 0, 0, 0];
    this.slider.setAttribute("aria-label", "Position");
    this.slider.addEventListener("input", () => { this.pause(); this.toTick(Number(this.slider.value)); });
    this.position = make("span", "reel-position");
    bar.append(this.speedChoice, this.slider, this.position);
    this.root.append(bar);
  }

  async open(media) {
    const reels = await Promise.all(media.map(openReel));
    this.frames = reels.map((reel) => new Frames(reel, CACHE_BYTES / reels.length));
    reels.forEach((reel, index) => { [this.canvases[index].width, this.canvases[index].height] = [reel.width, reel.height]; });
    this.rateHz = Math.max(...reels.map((reel) => reel.rateHz)); // a step is a frame of the fastest reel
    this.duration = Math.max(...reels.map((reel) => reel.frames / reel.rateHz));
    this.ticks = Math.max(1, Math.round(this.duration * this.rateHz));
    this.slider.max = this.ticks - 1;
    if (this.closed) return this.frames.forEach((one) => one.close());
    await this.show();
    this.dispatchEvent(new Event("ready"));
    return undefined;
  }

  // The frame of each reel at the clock; a reel that has ended keeps its last.
  due() {
    return this.frames.map(({ reel }) => Math.min(reel.frames - 1, Math.floor(this.time * reel.rateHz + 1e-6)));
  }

  get tick() { return Math.min(this.ticks - 1, Math.floor(this.time * this.rateHz + 1e-6)); }

  // Share of the steps that were on the page, 0..1.
  get watched() { return this.ticks ? this.shown.size / this.ticks : 0; }

  // Draws all reels at the clock once all have decoded their frame: none runs ahead of another.
  async show() {
    await Promise.all(this.due().map((number, index) => this.frames[index].load(number)));
    return this.draw();
  }

  draw() {
    if (this.closed) return false;
    const numbers = this.due();
    const pictures = numbers.map((number, index) => this.frames[index].get(number));
    numbers.forEach((number, index) => {
      for (let next = number; next <= number + AHEAD; next += 1) this.frames[index].load(next)?.catch((error) => this.fail(error));
    });
    if (pictures.includes(undefined)) return false;
    pictures.forEach((picture, index) => this.canvases[index].getContext("2d").drawImage(picture, 0, 0));
    this.drawn = numbers;
    this.shown.add(this.tick);
    this.slider.value = this.tick;
    this.position.textContent = `${this.time.toFixed(2)} of ${this.duration.toFixed(2)} s`;
    this.slider.setAttribute("aria-valuetext", this.position.textContent);
    this.dispatchEvent(new Event("frame"));
    return true;
  }

  fail(error) {
    this.pause();
    this.position.textContent = "A frame could not be shown.";
    this.dispatchEvent(new CustomEvent("error", { detail: error }));
  }

  play() {
    if (this.playing || !this.frames || this.closed) return;
    if (this.tick >= this.ticks - 1) this.time = 0;
    this.playing = true;
    this.playButton.textContent = "Pause";
    let before = null;
    const run = (now) => {
      if (!this.playing) return;
      const earlier = this.time;
      if (before !== null) this.time += Math.min(0.25, (now - before) / 1000) * this.speed;
      before = now;
      if (this.time >= this.duration) this.time = this.loop ? this.time % this.duration : (this.ticks - 1) / this.rateHz;
      const ended = !this.loop && this.tick >= this.ticks - 1;
      if (!this.draw()) this.time = earlier; // the clock waits for the slowest decoder
      else if (ended) return this.end();
      this.request = requestAnimationFrame(run);
    };
    this.request = requestAnimationFrame(run);
  }

  end() {
    this.pause();
    this.dispatchEvent(new Event("ended"));
  }

  pause() {
    if (!this.playing) return;
    this.playing = false;
    cancelAnimationFrame(this.request);
    this.playButton.textContent = "Play";
  }

  toggle() { if (this.playing) this.pause(); else this.play(); }

  step(count) {
    this.pause();
    return this.toTick(this.frames ? this.tick + count : 0);
  }

  // To a step of the fastest reel, from 0; resolves when it is on the page.
  toTick(tick) {
    if (!this.frames) return Promise.resolve(false);
    this.time = Math.max(0, Math.min(this.ticks - 1, tick)) / this.rateHz;
    return this.show().catch((error) => this.fail(error));
  }

  setSpeed(speed) {
    [this.speed, this.speedChoice.value] = [speed, String(speed)];
  }

  setLoop(on) {
    this.loop = on;
    this.loopButton.setAttribute("aria-pressed", String(on));
  }

  // Carries out a key press; true if it was one of REEL_KEYS and nothing else is to be done about it.
  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return false;
    const at = event.target;
    const writes = event.key === " " ? "input" : "input:not([type=radio]):not([type=checkbox])";
    const field = at.closest?.(`${writes}, textarea, select, [contenteditable]`);
    if (field && !(field === this.slider && event.key === " ")) return false;
    if (event.key === " " && at.closest?.("button, a, summary, [role=button]")) return false;
    const acts = {
      " ": () => this.toggle(), ",": () => this.step(-1), ".": () => this.step(1),
      s: () => this.setSpeed(this.speed < 1 ? 1 : 0.25), l: () => this.setLoop(!this.loop),
      Home: () => { this.pause(); this.toTick(0); },
    };
    if (!Object.hasOwn(acts, event.key)) return false;
    acts[event.key]();
    return true;
  }

  // Ends the player and gives its memory back; its part of the page goes too.
  close() {
    this.closed = true;
    this.pause();
    document.removeEventListener("keydown", this.onKey);
    document.removeEventListener("visibilitychange", this.onHide);
    this.frames?.forEach((one) => one.close());
    this.root.remove();
  }
}
