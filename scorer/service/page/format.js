// Numbers and times as people read them. Times are shown as they were sent, in the model's time zone: the browser's
// own zone plays no part, or "20:30" would be another half hour for every reader.

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

export const LEVELS = [
  ["Fresh", "forecast and live usage"],
  ["No live correction", "forecast only; usage is not measured"],
  ["Old model", "its bounds are widened"],
  ["Requests", "no usable model; live usage keeps pods off full nodes"],
  ["Neutral", "nothing is known; kube-scheduler's own scores decide"],
];

export function clock(iso) {
  return iso.slice(11, 16);
}

// The time of a peak: 22:00, and Mon 22:00 on another day than that of `now`.
export function when(iso, now) {
  return iso.slice(0, 10) === now.slice(0, 10) ? clock(iso) : `${day(iso).slice(0, 3)} ${clock(iso)}`;
}

export function day(iso) {
  const [year, month, date] = iso.slice(0, 10).split("-").map(Number);
  return `${DAYS[new Date(Date.UTC(year, month - 1, date)).getUTCDay()]} ${date} ${MONTHS[month - 1]}`;
}

export function percent(share) {
  return share === null || share === undefined ? "?" : `${Math.round(100 * share)} %`;
}

function digits(value) {
  return String(Number(value >= 100 ? value.toFixed(0) : value.toPrecision(3))); // no zeros at the end: 40, not 40.0
}

function scaled(value, base, names) {
  let step = 0;
  for (let left = Math.abs(value); left >= base && step < names.length - 1; left /= base) step += 1;
  return `${digits(value / base ** step)} ${names[step]}`;
}

// Memory is sold in powers of two, bandwidth in powers of ten.
export function amount(value, unit) {
  if (value === null || value === undefined) return "?";
  if (/^bytes?.*(s|second)$/.test(unit) && unit !== "bytes") return scaled(value, 1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]);
  if (unit === "bytes") return scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
  return `${digits(value)} ${unit}`;
}

// "9.07 of 8 cores"
export function partOf(part, whole, unit) {
  const [first, second] = [amount(part, unit), amount(whole, unit)];
  const [number, name] = first.split(" ");
  return `${second.endsWith(` ${name}`) ? number : first} of ${second}`;
}

export function age(seconds) {
  if (seconds === null || seconds === undefined) return "never";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

// Names come from the cluster and could be anything: they only ever become text, never markup.
export function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== null && text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
