// The cell in perspective on a plain canvas: boxes, the arm's capsules, objects, the planned path. Frame: base_link [m].

const TARGET = [0.38, 0.02, 0.24];
const DISTANCE_M = 2.6;
const PIECES = 4; // a capsule is painted in pieces, so that nearer parts cover farther ones
const COLORS = { red: "#d5443f", green: "#3f9a57", blue: "#3f74d5", yellow: "#d9b52e", orange: "#df8733", purple: "#8d55b5", white: "#f4f4f0", black: "#33363b" };

// The area of `box` that `others` cover [px²]; where two of them overlap, it counts twice.
function covered(box, others) {
  return others.reduce((sum, one) => {
    const across = Math.min(box.x + box.w, one.x + one.w) - Math.max(box.x, one.x);
    const down = Math.min(box.y + box.h, one.y + one.h) - Math.max(box.y, one.y);
    return sum + Math.max(0, across) * Math.max(0, down);
  }, 0);
}

export class ArmView {
  constructor(canvas) {
    this.canvas = canvas;
    this.azimuth = 0.75; // from the front, beside the arm [rad]
    this.elevation = 0.42;
    this.cell = null;
    this.arm = null;
    this.objects = [];
    this.path = null;
    this.waiting = false;
    canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));
    canvas.addEventListener("pointermove", (event) => {
      if (event.buttons) this.turn(-event.movementX * 0.008, event.movementY * 0.006);
    });
    canvas.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: [0.1, 0], ArrowRight: [-0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
      if (!by) return;
      event.preventDefault();
      this.turn(...by);
    });
    new ResizeObserver(() => this.redraw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
  }

  turn(azimuth, elevation) {
    this.azimuth += azimuth;
    this.elevation = Math.min(1.5, Math.max(0.02, this.elevation + elevation));
    this.redraw();
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  // Pixels and the scale there [px/m] of a point, and how far it is from the eye [m].
  project([x, y, z]) {
    const [dx, dy, dz] = [x - TARGET[0], y - TARGET[1], z - TARGET[2]];
    const [ca, sa, ce, se] = [Math.cos(this.azimuth), Math.sin(this.azimuth), Math.cos(this.elevation), Math.sin(this.elevation)];
    const toward = (dx * ca + dy * sa) * ce + dz * se; // along the line from the target to the eye
    const right = -dx * sa + dy * ca;
    const up = -(dx * ca + dy * sa) * se + dz * ce;
    const depth = Math.max(0.2, DISTANCE_M - toward);
    const scale = this.focal / depth;
    return { x: this.width / 2 + right * scale, y: this.height / 2 - up * scale, scale, depth };
  }

  polygon(points, fill, stroke) {
    const g = this.g;
    g.beginPath();
    points.map((p) => this.project(p)).forEach((p, i) => (i ? g.lineTo(p.x, p.y) : g.moveTo(p.x, p.y)));
    g.closePath();
    if (fill) { g.fillStyle = fill; g.fill(); }
    if (stroke) { g.strokeStyle = stroke; g.lineWidth = 1; g.stroke(); }
  }

  line(points, color, width, dash = []) {
    const g = this.g;
    g.setLineDash(dash);
    g.beginPath();
    points.map((p) => this.project(p)).forEach((p, i) => (i ? g.lineTo(p.x, p.y) : g.moveTo(p.x, p.y)));
    g.strokeStyle = color;
    g.lineWidth = width;
    g.stroke();
    g.setLineDash([]);
  }

  draw() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    if (!this.width || !this.height) return;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.focal = 1.6 * Math.min(this.height, 0.75 * this.width);
    const g = (this.g = this.canvas.getContext("2d"));
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.lineCap = g.lineJoin = "round";
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(`--${name}`).trim();
    if (!this.cell) return;
    this.drawCell(color);
    const shapes = this.shapes(color);
    for (const row of this.arm ? this.arm.capsules : []) {
      this.line([[row[0], row[1], 0], [row[3], row[4], 0]], color("shadow"), 2 * row[6] * this.project([row[0], row[1], 0]).scale);
    }
    for (const o of this.objects) this.line([[o.at[0], o.at[1], 0], [o.at[0], o.at[1], 0]], color("shadow"), 0.06 * this.project(o.at).scale);
    shapes.sort((a, b) => b.depth - a.depth).forEach((shape) => shape.paint());
    if (this.path && this.path.points.length > 1) {
      this.line(this.path.points, this.path.cut_short ? color("bad") : color("good"), 2.5);
    }
    this.drawLabels(color);
  }

  // Names beside their objects, off the arm, the objects and each other, with a line to an object that is not beside it.
  drawLabels(color) {
    const g = this.g;
    g.font = "12px system-ui, sans-serif";
    g.textAlign = "center";
    g.textBaseline = "middle";
    const round = (p, radius) => ({ x: p.x - radius, y: p.y - radius, w: 2 * radius, h: 2 * radius });
    const arm = (this.arm ? this.arm.capsules : []).flatMap(([x0, y0, z0, x1, y1, z1, radius]) =>
      [0, 0.25, 0.5, 0.75, 1].map((t) => {
        const p = this.project([x0 + t * (x1 - x0), y0 + t * (y1 - y0), z0 + t * (z1 - z0)]);
        return round(p, radius * p.scale);
      }));
    const objects = this.objects.map((o) => ({ o, p: this.project(o.at) }));
    const dots = objects.map(({ p }) => round(p, 0.025 * p.scale));
    const labels = [];
    for (const { o, p } of objects.sort((one, other) => one.p.depth - other.p.depth)) {
      const [w, h] = [g.measureText(o.name).width + 6, 16];
      const places = [26, 44, 66, 92, 120].flatMap((far) => [...Array(12).keys()].map((i) => {
        const [x, y] = [p.x + (w / 2 + far - 16) * Math.cos((i * Math.PI) / 6), p.y - far * Math.sin((i * Math.PI) / 6)];
        const box = { x: x - w / 2, y: y - h / 2, w, h };
        const out = box.x < 2 || box.y < 2 || box.x + w > this.width - 2 || box.y + h > this.height - 2;
        const cost = (out || covered(box, labels.map((label) => label.box)) ? 1e6 : 0) + covered(box, dots) * 10 + covered(box, arm) + far;
        return { name: o.name, x, y, box, cost, from: p };
      }));
      const best = places.reduce((one, other) => (other.cost < one.cost ? other : one));
      labels.push(best);
    }
    for (const { name, x, y, box, from } of labels) {
      const to = { x: Math.min(Math.max(from.x, box.x), box.x + box.w), y: Math.min(Math.max(from.y, box.y), box.y + box.h) };
      g.beginPath();
      g.moveTo(from.x, from.y);
      g.lineTo(to.x, to.y);
      g.strokeStyle = color("quiet");
      g.lineWidth = 1;
      g.stroke();
      g.strokeStyle = color("paper");
      g.lineWidth = 3;
      g.strokeText(name, x, y);
      g.fillStyle = color("ink");
      g.fillText(name, x, y);
    }
    this.canvas.labels = labels.map(({ name, box }) => ({ name, ...box }));
  }

  drawCell(color) {
    const [[x0, y0], [x1, y1]] = this.cell.table;
    for (const [a, b] of this.cell.walls) {
      const thin = b[0] - a[0] < b[1] - a[1];
      const face = thin
        ? [[a[0], a[1], 0], [a[0], b[1], 0], [a[0], b[1], b[2]], [a[0], a[1], b[2]]]
        : [[a[0], a[1], 0], [b[0], a[1], 0], [b[0], a[1], b[2]], [a[0], a[1], b[2]]];
      this.polygon(face, color("wall"), color("rule"));
    }
    this.polygon([[x0, y0, 0], [x1, y0, 0], [x1, y1, 0], [x0, y1, 0]], color("table"), color("grid"));
    for (let x = Math.ceil(x0 / 0.2) * 0.2; x < x1; x += 0.2) this.line([[x, y0, 0], [x, y1, 0]], color("grid"), 0.6);
    for (let y = Math.ceil(y0 / 0.2) * 0.2; y < y1; y += 0.2) this.line([[x0, y, 0], [x1, y, 0]], color("grid"), 0.6);
    const [low, high] = this.cell.workspace;
    const ring = (z) => [[low[0], low[1], z], [high[0], low[1], z], [high[0], high[1], z], [low[0], high[1], z], [low[0], low[1], z]];
    for (const z of [low[2], high[2]]) this.line(ring(z), color("quiet"), 0.8, [4, 5]);
    for (const [x, y] of ring(0).slice(0, 4)) this.line([[x, y, low[2]], [x, y, high[2]]], color("quiet"), 0.8, [4, 5]);
    [["#d5443f", [0.15, 0, 0]], ["#3f9a57", [0, 0.15, 0]], ["#3f74d5", [0, 0, 0.15]]].forEach(([c, tip]) => this.line([[0, 0, 0.002], tip], c, 2));
  }

  // Everything round, to be painted from far to near.
  shapes(color) {
    const shapes = [];
    const g = this.g;
    const stroke = (a, b, width, style) => {
      g.beginPath();
      g.moveTo(a.x, a.y);
      g.lineTo(b.x + 0.01, b.y);
      g.strokeStyle = style;
      g.lineWidth = Math.max(0.5, width);
      g.stroke();
    };
    for (const [x0, y0, z0, x1, y1, z1, radius] of this.arm ? this.arm.capsules : []) {
      for (let i = 0; i < PIECES; i++) {
        const at = (t) => this.project([x0 + t * (x1 - x0), y0 + t * (y1 - y0), z0 + t * (z1 - z0)]);
        const [a, b] = [at(i / PIECES), at((i + 1) / PIECES)];
        const width = radius * (a.scale + b.scale);
        const depth = (a.depth + b.depth) / 2;
        shapes.push({ depth: depth + radius, paint: () => stroke(a, b, width + 2, color("arm-edge")) });
        shapes.push({ depth: depth, paint: () => stroke(a, b, width, color("arm")) });
        const shift = { x: -width * 0.13, y: -width * 0.16 };
        const [c, d] = [{ x: a.x + shift.x, y: a.y + shift.y }, { x: b.x + shift.x, y: b.y + shift.y }];
        shapes.push({ depth: depth - 0.002, paint: () => stroke(c, d, width * 0.45, "#ffffff38") });
      }
    }
    for (const o of this.objects) {
      const p = this.project(o.at);
      const fill = COLORS[o.name.split(" ")[0]] || color("quiet");
      shapes.push({ depth: p.depth, paint: () => { stroke(p, p, 0.046 * p.scale + 2, color("arm-edge")); stroke(p, p, 0.046 * p.scale, fill); } });
    }
    return shapes;
  }
}
