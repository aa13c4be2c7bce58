// What a person did and the server has not acknowledged yet: answers and undos, kept in the browser until they are saved.
// Each has an id, by which the server knows a second sending of it. So a reload, a second tab or a lost reply doubles
// nothing: every tab sends what it finds, in order, and the server counts it once.

const PAUSES_MS = [300, 600, 1200, 2500, 5000];

export class Refused extends Error {} // by the server, for good: sending it again would not help
export class NotNow extends Error {} // no connection, or the server is busy: to be sent again

export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Queue {
  // key: of the person; send(operation): promise, raises Refused or NotNow; told: {waiting, saved, refused}, called with
  // the number that waits, with an operation that was saved, and with one that was refused and why.
  constructor(key, send, told) {
    this.prefix = `merton-people ${key} `;
    this.send = send;
    this.told = told;
    this.unkept = new Map(); // where the browser keeps nothing
    this.running = false;
    this.failures = 0;
    this.wake = null;
    window.addEventListener("online", () => this.flush());
    window.addEventListener("storage", (event) => {
      if (event.key === null || event.key.startsWith(this.prefix)) this.told.waiting(this.waiting().length, true);
    });
  }

  // Operations in the order in which they were made.
  waiting() {
    const found = new Map(this.unkept);
    try {
      for (let index = 0; index < localStorage.length; index++) {
        const name = localStorage.key(index);
        if (name.startsWith(this.prefix)) found.set(name, localStorage.getItem(name));
      }
    } catch { /* the browser keeps nothing */ }
    return [...found.keys()].sort().map((name) => ({ ...JSON.parse(found.get(name)), name }));
  }

  // Kept when this returns.
  add(operation) {
    const last = this.waiting().at(-1);
    const at = Math.max(Date.now(), last ? Number(last.name.slice(this.prefix.length).split(" ")[0]) + 1 : 0);
    const name = `${this.prefix}${String(at).padStart(15, "0")} ${operation.id}`;
    const text = JSON.stringify(operation);
    try {
      localStorage.setItem(name, text);
    } catch {
      this.unkept.set(name, text);
    }
    this.told.waiting(this.waiting().length, false);
    this.flush();
  }

  // Take back what was never sent; false if it may have been.
  remove(id) {
    const found = this.waiting().find((operation) => operation.id === id);
    if (!found || this.sending === id) return false;
    this.drop(found.name);
    return true;
  }

  drop(name) {
    this.unkept.delete(name);
    try {
      localStorage.removeItem(name);
    } catch { /* nothing was kept */ }
    this.told.waiting(this.waiting().length, false);
  }

  async flush() {
    if (this.running) {
      this.wake?.();
      return;
    }
    this.running = true;
    for (let next = this.waiting()[0]; next; next = this.waiting()[0]) {
      const { name, ...operation } = next;
      this.sending = operation.id;
      try {
        await this.send(operation);
        this.failures = 0;
        this.sending = null;
        this.drop(name);
        this.told.saved(operation);
      } catch (error) {
        this.sending = null;
        if (error instanceof Refused) {
          this.drop(name);
          this.told.refused(operation, error.message);
        } else if (error instanceof NotNow) {
          await this.pause();
        } else {
          this.running = false;
          throw error;
        }
      }
    }
    this.running = false;
  }

  async pause() {
    const most = PAUSES_MS[Math.min(this.failures++, PAUSES_MS.length - 1)];
    this.told.waiting(this.waiting().length, false);
    await new Promise((resolve) => {
      this.wake = resolve;
      setTimeout(resolve, most * (0.75 + Math.random() / 2));
    });
    this.wake = null;
  }
}
