// Nodes by hour on a canvas, in the colours of scorer/load_scale.py, which scorer/service/routes/page_and_report.py puts in here.
import { clock, day, percent } from "./format.js";

const SCALE = [/* LOAD_SCALE */];  // [{share, light, dark}, ...] by share
const HIGHEST = SCALE.at(-1).share;

const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

export function colour(share, styles) {
  if (share === null) return styles.unknown;
  const within = Math.min(Math.max(share, 0), HIGHEST);
  const high = Math.max(1, SCALE.findIndex((one) => one.share >= within));
  const [low, next] = [SCALE[high - 1], SCALE[high]];
  const part = (within - low.share) / (next.share - low.share);
  const [from, to] = [low, next].map((one) => channels(one[styles.mode]));
  return `rgb(${from.map((value, i) => Math.round(value + part * (to[i] - value))).join(",")})`;
}

// Paper is light: canvases are drawn anew for it, since what they hold is a picture already.
const root = document.documentElement;
const isDark = matchMedia("(prefers-color-scheme: dark)");
const mode = () => (isDark.matches && root.dataset.printing === undefined ? "dark" : "light");

export function onChangeOfMode(draw) {
  isDark.addEventListener("change", draw);
  addEventListener("beforeprint", () => { root.dataset.printing = ""; draw(); });
  addEventListener("afterprint", () => { delete root.dataset.printing; draw(); });
}

function stylesOf(node) {
  const read = getComputedStyle(node);
  const value = (name) => read.getPropertyValue(name).trim();
  return { mode: mode(), unknown: value("--unknown"), ink: value("--ink"), soft: value("--soft") };
}

export function drawLegend(canvas) {
  const pen = canvas.getContext("2d");
  const styles = { mode: mode() };
  for (let x = 0; x < canvas.width; x += 1) {
    pen.fillStyle = colour((HIGHEST * x) / (canvas.width - 1), styles);
    pen.fillRect(x, 0, 1, canvas.height);
  }
}

export class HeatMap {
  // onCell(node, text): the cell pointed at; onOpen(node): its node was chosen
  constructor(canvas, onCell, onOpen) {
    this.canvas = canvas;
    this.onCell = onCell;
    this.onOpen = onOpen;
    this.data = null;
    this.at = null;
    canvas.addEventListener("pointermove", (event) => this.point(event));
    canvas.addEventListener("pointerdown", (event) => this.point(event));
    canvas.addEventListener("click", (event) => {
      // A finger has no hover: its tap points, and the button beside the text opens.
      if (this.point(event) && event.pointerType !== "touch") this.onOpen(this.data.nodes[this.at.row]);
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(canvas.parentElement);
    onChangeOfMode(() => this.draw());
  }

  show(data, now) {
    this.data = data;
    this.now = now;
    if (this.at && (this.at.row >= data.nodes.length || this.at.column >= data.hours.length)) this.at = null;
    this.draw();
  }

  draw() {
    if (!this.data) return;
    const { nodes, hours, share } = this.data;
    const width = this.canvas.parentElement.clientWidth;
    const ratio = window.devicePixelRatio || 1;
    const pen = this.canvas.getContext("2d");
    const font = "12px system-ui, sans-serif";
    pen.font = font;
    const longest = Math.max(0, ...nodes.map((name) => pen.measureText(name).width));
    this.left = Math.min(longest + 10, width * 0.28);
    this.top = 20;
    this.row = nodes.length > 100 ? 8 : 15;
    this.column = (width - this.left) / Math.max(1, hours.length);
    const height = this.top + this.row * nodes.length;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    pen.scale(ratio, ratio);
    pen.font = font;
    const styles = stylesOf(this.canvas);
    const seen = new Set();
    share.forEach((row, i) => row.forEach((value, j) => {
      const fill = colour(value, styles);
      seen.add(fill);
      pen.fillStyle = fill;
      // Half a pixel wider than the column: no gaps where a column ends between two pixels.
      pen.fillRect(this.left + j * this.column, this.top + i * this.row, this.column + 0.5, this.row - (this.row > 8 ? 1 : 0));
    }));
    pen.textBaseline = "middle";
    if (!nodes.length) {
      pen.fillStyle = styles.soft;
      pen.fillText("Nothing is predicted yet.", 0, 8);
    }
    if (this.row > 8) {
      nodes.forEach((name, i) => {
        pen.fillStyle = styles.ink;
        pen.fillText(this.cut(pen, name), 0, this.top + (i + 0.5) * this.row);
      });
    }
    // Days may start before now and the first one be cut short; "now" comes first, where there is no room for both.
    const current = this.current();
    const marks = hours.map((hour, j) => [j, hour]).filter(([j, hour]) => j === current || clock(hour) === "00:00");
    const nowAt = this.left + Math.max(0, current) * this.column;
    let free = 0;
    for (const [j, hour] of marks) {
      const x = this.left + j * this.column;
      const text = j === current ? "now" : 24 * this.column > 70 ? day(hour) : day(hour).slice(0, 3);
      const end = x + pen.measureText(text).width + 8;
      pen.fillStyle = j === current ? styles.ink : styles.soft;
      if (j > 0) pen.fillRect(x, this.top - 4, j === current ? 2 : 1, height);
      if (x < free || (j < current && end > nowAt)) continue;
      pen.fillText(text, x + (j ? 3 : 0), 8);
      free = end;
    }
    if (this.at) {
      pen.strokeStyle = styles.ink;
      pen.lineWidth = 2;
      pen.strokeRect(this.left + this.at.column * this.column - 1, this.top + this.at.row * this.row - 1,
        Math.max(4, this.column + 2), this.row + 1);
    }
    this.canvas.dataset.colours = seen.size;
    this.canvas.dataset.cells = nodes.length * hours.length;
    this.canvas.dataset.ready = "true";
  }

  current() {
    return this.data.hours.findLastIndex((hour) => Date.parse(hour) <= this.now);
  }

  cut(pen, name) {
    if (pen.measureText(name).width <= this.left - 8) return name;
    let end = name.length;
    while (end > 1 && pen.measureText(`…${name.slice(-end)}`).width > this.left - 8) end -= 1;
    return `…${name.slice(-end)}`; // the end of a node's name is what tells nodes apart
  }

  point(event) {
    if (!this.data) return false;
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - this.left) / this.column);
    const row = Math.floor((event.clientY - box.top - this.top) / this.row);
    if (row < 0 || row >= this.data.nodes.length || column >= this.data.hours.length) return false;
    return this.move(row, Math.max(0, column));
  }

  key(event) {
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], PageUp: [0, -24], PageDown: [0, 24] };
    if (!this.data || !this.data.nodes.length) return;
    if (event.key === "Enter" && this.at) this.onOpen(this.data.nodes[this.at.row]);
    if (!(event.key in steps)) return;
    event.preventDefault();
    const limit = (value, length) => Math.min(length - 1, Math.max(0, value));
    const from = this.at ?? { row: 0, column: Math.max(0, this.current()) };
    const [down, right] = this.at ? steps[event.key] : [0, 0];
    this.move(limit(from.row + down, this.data.nodes.length), limit(from.column + right, this.data.hours.length));
  }

  move(row, column) {
    this.at = { row, column };
    const hour = this.data.hours[column];
    const share = this.data.share[row][column];
    const what = this.data.resource ?? "the highest resource";
    const assumed = this.data.assumed[row] ? ", assumed capacity" : "";
    const load = share === null ? "not known" : `${percent(share)} of ${what}${assumed}`;
    this.onCell(this.data.nodes[row], `${this.data.nodes[row]}, ${day(hour)} ${clock(hour)}: ${load}`);
    this.draw();
    return true;
  }
}
