// The media of a slot and of those after it, loaded and decoded before they are shown.

const AGAIN_MS = 1000;

export class Preload {
  // get(url): promise of a Blob.
  constructor(get) {
    this.get = get;
    this.slots = new Map(); // number to {promise, stop, urls}
  }

  // Begin with these slots, in their order, and forget all others.
  keep(slots) {
    const wanted = new Set(slots.map((slot) => slot.number));
    for (const [number, entry] of this.slots) {
      if (!wanted.has(number)) {
        entry.stopped = true;
        entry.urls.forEach((url) => URL.revokeObjectURL(url));
        this.slots.delete(number);
      }
    }
    let before = Promise.resolve();
    for (const slot of slots) {
      if (!this.slots.has(slot.number)) {
        const entry = { stopped: false, ready: false, urls: [] };
        entry.promise = before.then(() => this.load(slot, entry));
        entry.promise.catch(() => {});
        this.slots.set(slot.number, entry);
      }
      before = this.slots.get(slot.number).promise.catch(() => {});
    }
  }

  ready(number) {
    return this.slots.get(number)?.ready ?? false;
  }

  // Role to {role, kind, url, width, height, frames, rate_hz}; the url is a blob of this page.
  media(number) {
    return this.slots.get(number).promise;
  }

  async load(slot, entry) {
    const media = {};
    for (const medium of slot.media) media[medium.role] = await this.one(medium, entry);
    entry.ready = true;
    return media;
  }

  async one(medium, entry) {
    while (!entry.stopped) {
      let blob;
      try {
        blob = await this.get(medium.url);
      } catch (error) {
        if (error.lasting) throw error;
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
        continue;
      }
      const url = URL.createObjectURL(blob);
      entry.urls.push(url);
      if (medium.kind === "image") {
        const image = new Image();
        image.src = url;
        await image.decode().catch(() => {});
        entry.images = [...(entry.images ?? []), image]; // keeps it decoded
      }
      return { ...medium, url };
    }
    throw new Error("this item is not needed any more");
  }
}
