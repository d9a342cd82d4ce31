// One resource of a node or service over half hours, as SVG: expected, its bound, measured, capacity, now.
import { amount, clock, day, element } from "./format.js";

const NS = "http://www.w3.org/2000/svg";
const LEFT = 74;
const RIGHT = 8;
const TOP = 18;
const BOTTOM = 22;

function shape(tag, attributes, text) {
  const made = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// 1, 2 or 5 times a power of the unit's base, about four lines.
function tickStep(highest, unit) {
  const base = unit === "bytes" ? 1024 : 1000;
  let scale = 1;
  while (highest / scale >= base) scale *= base;
  const raw = highest / scale / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((m) => m * power).find((m) => m >= raw) * scale;
}

function path(values, x, y) {
  let text = "";
  let pen = false;
  values.forEach((value, i) => {
    if (value === null) {
      pen = false;
      return;
    }
    text += `${pen ? "L" : "M"}${x(i).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = true;
  });
  return text;
}

export function chart(curve, starts, now, width) {
  const height = width < 600 ? 190 : 230;
  const known = [...curve.expected, ...(curve.bound ?? []), ...(curve.actual ?? [])].filter((v) => v !== null);
  let highest = Math.max(...known, 0);
  // A capacity far above the load would press the curves to the ground: then it is told in words.
  const capacityInPicture = curve.capacity !== null && highest >= 0.25 * curve.capacity;
  if (capacityInPicture) highest = Math.max(highest, curve.capacity);
  highest = highest * 1.06 || 1;
  const n = starts.length;
  const x = (i) => LEFT + ((width - LEFT - RIGHT) * i) / Math.max(1, n - 1);
  const y = (v) => height - BOTTOM - ((height - TOP - BOTTOM) * v) / highest;

  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img" });
  const first = curve.days.find((peak) => Date.parse(peak.at) >= now) ?? curve.days.at(-1);
  svg.setAttribute("aria-label",
    `${curve.resource}: ${first ? `expected peak of ${day(first.day)} ${amount(first.expected, curve.unit)}` : "no peak known"}`);
  const step = tickStep(highest, curve.unit);
  for (let tick = 0; tick <= highest; tick += step) {
    svg.append(shape("line", { x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick), class: "grid" }));
    svg.append(shape("text", { x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, tick ? amount(tick, curve.unit) : "0"));
  }
  const dayWidth = (width - LEFT - RIGHT) / (n / 48);
  starts.forEach((start, i) => {
    if (clock(start) !== "00:00") return;
    svg.append(shape("line", { x1: x(i), x2: x(i), y1: TOP, y2: height - BOTTOM, class: "grid" }));
    if (x(i) + dayWidth * 0.7 < width) {
      const label = dayWidth > 74 ? day(start) : day(start).slice(0, dayWidth > 26 ? 3 : 1);
      svg.append(shape("text", { x: x(i) + 3, y: height - 6 }, label));
    }
  });
  if (curve.bound !== null) {
    const upper = curve.bound.map((v, i) => (v === null ? curve.expected[i] : v));
    const points = upper.map((v, i) => [i, v]).filter(([i, v]) => v !== null && curve.expected[i] !== null);
    const there = points.map(([i, v]) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`);
    const back = points.map(([i]) => `${x(i).toFixed(1)},${y(curve.expected[i]).toFixed(1)}`).reverse();
    svg.append(shape("polygon", { points: [...there, ...back].join(" "), class: "band" }));
  }
  svg.append(shape("path", { d: path(curve.expected, x, y), class: "expected" }));
  if (curve.actual !== null) svg.append(shape("path", { d: path(curve.actual, x, y), class: "actual" }));
  if (capacityInPicture) {
    const at = y(curve.capacity);
    svg.append(shape("line", { x1: LEFT, x2: width - RIGHT, y1: at, y2: at, class: "capacity" }));
    svg.append(shape("text", { x: width - RIGHT, y: at - 4, "text-anchor": "end", class: "capacity-text" },
      `${capacityWord(curve)} ${amount(curve.capacity, curve.unit)}`));
  }
  const times = starts.map(Date.parse);
  const slot = times.findLastIndex((time) => time <= now);
  if (slot >= 0 && slot < n - 1) {
    const at = x(slot + Math.min(1, (now - times[slot]) / 1.8e6));
    svg.append(shape("line", { x1: at, x2: at, y1: TOP, y2: height - BOTTOM, class: "now" }));
    svg.append(shape("text", { x: at, y: TOP - 5, "text-anchor": "middle", class: "now-text" }, "now"));
  }
  return { svg, capacityInPicture };
}

const capacityWord = (curve) => (curve.assumed ? "assumed capacity" : "capacity");

export function chartBlock(curve, starts, now, width) {
  const block = element("div", null, { "data-resource": curve.resource });
  const { svg, capacityInPicture } = chart(curve, starts, now, width);
  block.append(element("h3", curve.resource));
  const notes = [];
  if (curve.actual === null) notes.push("not measured here, predicted only");
  if (curve.capacity === null) notes.push("no capacity: not a limit");
  else if (!capacityInPicture) {
    notes.push(`${capacityWord(curve)} ${amount(curve.capacity, curve.unit)} is far above the picture`);
  }
  if (notes.length) block.append(element("p", notes.join("; "), { class: "soft" }));
  block.append(svg);
  const list = element("ul", null, { class: "peaks", "aria-label": `Expected daily peaks of ${curve.resource}` });
  const current = starts.findLastIndex((start) => Date.parse(start) <= now);
  const today = (starts[Math.max(0, current)] ?? "").slice(0, 10); // local, as the days are
  for (const peak of curve.days.filter((peak) => peak.day >= today)) {
    const item = element("li", `${day(peak.day)} ${clock(peak.at)}: `);
    item.append(element("b", amount(peak.expected, curve.unit)));
    if (peak.bound !== null) item.append(`, upper bound (95 %) ${amount(peak.bound, curve.unit)}`);
    list.append(item);
  }
  block.append(list);
  return block;
}
