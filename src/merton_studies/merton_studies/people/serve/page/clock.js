// How long a person looked at an item: time in which the page was hidden does not count.

export class Clock {
  constructor() {
    this.start();
    document.addEventListener("visibilitychange", () => (document.hidden ? this.pause() : this.resume()));
  }

  start() {
    this.before = 0;
    this.since = document.hidden ? null : performance.now();
  }

  pause() {
    this.before = this.ms();
    this.since = null;
  }

  resume() {
    this.since ??= performance.now();
  }

  ms() {
    return this.before + (this.since === null ? 0 : performance.now() - this.since);
  }

  seconds() {
    return Math.round(this.ms()) / 1000;
  }
}
