// The page: asks the scorer, shows what it says, and says so when it does not answer. ?refresh=SECONDS, #node=NAME,
// #service=namespace/Kind/name.
import { chartBlock } from "./chart.js";
import { age, amount, clock, day, element, LEVELS, partOf, percent, when } from "./format.js";
import { drawLegend, HeatMap, onChangeOfMode } from "./heatmap.js";
import { rebalancing, showRebalancing } from "./rebalance.js";

const by = (id) => document.getElementById(id);
const REFRESH = Math.max(1, Number(new URLSearchParams(location.search).get("refresh")) || 60) * 1000;
const HOTTEST = 10;
const OLD_USAGE_SECONDS = 600;

let chosen = null; // {kind: "node" | "service", name}
let forecast = null;
let now = Date.now();
let lastGood = null;
let stale = [];

class Unauthorized extends Error {}

async function answerTo(path, seconds = 20) {
  const token = sessionStorage.getItem("token");
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { headers, signal: AbortSignal.timeout(1000 * seconds) });
  if (answer.ok) return answer;
  if (answer.status === 401) throw new Unauthorized("The token was not accepted.");
  const body = await answer.json();
  if (answer.status === 403) throw new Unauthorized(body.error);
  throw new Error(body.error ?? `status ${answer.status}`);
}

const ask = async (path) => (await answerTo(path)).json();

// A plain link carries no token. So an empty window is opened, whose policy gives it an origin of its own, and is handed
// the report: what is in the report never runs where the token is.
async function openReport() {
  const view = window.open("report-view", "_blank");
  if (!view) {
    showBanner("The browser did not open a window for the report: allow pop-ups for this page.");
    return;
  }
  const waiting = new AbortController();
  try {
    const asked = answerTo("report", 60).then((answer) => answer.text());
    const [report] = await Promise.all([asked, listening(view, 30, waiting.signal)]);
    view.postMessage({ report }, "*"); // its origin has no name
  } catch (error) {
    if (view.closed) return; // whoever closed it needs no report
    view.close();
    trouble(error);
  } finally {
    waiting.abort();
  }
}

// Until the opened window says that it listens; fails if it never does. Nothing is left once `signal` is aborted.
function listening(view, seconds, signal) {
  return new Promise((resolve, reject) => {
    const hear = (event) => event.source === view && resolve();
    const late = () => reject(new Error("The window of the report did not load."));
    const timer = setTimeout(late, 1000 * seconds);
    addEventListener("message", hear, { signal });
    signal.addEventListener("abort", () => clearTimeout(timer));
  });
}

function showBanner(trouble) {
  const texts = trouble ? [trouble] : stale;
  by("banner").hidden = texts.length === 0;
  by("banner").textContent = texts.join(" ");
}

function tile(title, text, small) {
  const box = element("div");
  const value = element("dd", text);
  if (small) value.append(element("small", small));
  box.append(element("dt", title), value);
  return box;
}

function showStatus(status) {
  now = Date.parse(status.now);
  const [word, meaning] = LEVELS[status.level];
  const model = status.model;
  by("state").replaceChildren(
    tile("State", word, meaning),
    model
      ? tile("Model", `trained until ${day(model.trained_until)}`, `its first day began ${age(model.age_seconds)} ago; ${model.version}`)
      : tile("Model", "none", "nothing is predicted"),
    tile("Usage measured", status.metrics_age_seconds === null ? "never" : `${age(status.metrics_age_seconds)} ago`,
      `${status.measured_nodes} of ${status.nodes} nodes`),
    tile("Cluster", `${status.nodes} nodes, ${status.pods} pods`,
      `${status.services} services; ${status.unknown_service_pods} pods unknown to the model`),
  );
  by("state").dataset.level = status.level;
  by("report-line").hidden = !status.report_written;
  if (status.report_written) {
    by("report-written").textContent = `(written ${age((Date.now() - Date.parse(status.report_written)) / 1000)} ago)`;
  }
  by("as-of").textContent = `As of ${day(status.now)}, ${clock(status.now)}`;
  by("zone").textContent = model ? ` (${model.time_zone})` : "";
  stale = [];
  if (!status.ready) stale.push(`The scorer is not ready: ${status.not_ready_because}.`);
  if (status.level > 0) stale.push(`${word}: ${status.reasons.join("; ") || meaning}.`);
  else if (status.metrics_age_seconds === null || status.metrics_age_seconds > OLD_USAGE_SECONDS) {
    stale.push(`Usage was last measured ${status.metrics_age_seconds === null ? "never" : `${age(status.metrics_age_seconds)} ago`}.`);
  }
  for (const found of model?.findings ?? []) stale.push(`${found.finding}: ${found.what}; ${found.what_to_do}.`);
  const refused = status.refused_model ?? model?.refused;
  if (refused) stale.push(`A newer model was refused: ${refused}.`);
}

// The order is the server's, as in every list of nodes.
function showHottest(nodes, now) {
  const known = nodes.filter((node) => node.peak && node.peak.share !== null);
  const rows = known.map((node) => {
    const peak = node.peak;
    const row = element("tr");
    const name = element("td", null, { class: "name" });
    const open = element("button", node.name, { type: "button", class: "link" });
    open.addEventListener("click", () => choose("node", node.name, true));
    name.append(open);
    if (!node.ready) name.append(element("small", " not ready"));
    const share = element("td");
    share.append(element("b", percent(peak.share)));
    if (peak.bound !== null) share.append(" ", element("small", `upper bound (95 %) ${percent(peak.bound / peak.capacity)}`));
    const real = element("td", `${partOf(peak.expected, peak.capacity, peak.unit)} `);
    real.append(element("small", peak.assumed ? `${peak.resource}, assumed capacity` : peak.resource));
    row.append(name, share, element("td", when(peak.at, now)), real, element("td", String(node.pods), { class: "wide" }));
    return row;
  });
  if (!rows.length) {
    const cell = element("td", nodes.length ? "Nothing is predicted: there is no usable model." : "There are no nodes.",
      { colspan: "5" });
    const row = element("tr");
    row.append(cell);
    rows.push(row);
  }
  by("hottest").tBodies[0].replaceChildren(...rows);
  by("hottest").dataset.ready = "true";
  return known.length ? known[0].name : nodes[0]?.name;
}

function showChoices(nodes, services) {
  const names = [...nodes.map((n) => n.name), ...services.map((s) => `${s.namespace}/${s.kind}/${s.name}`)];
  by("choices").replaceChildren(...names.map((name) => element("option", null, { value: name })));
}

const heat = new HeatMap(
  by("heat"),
  (node, text) => {
    by("heat-cell").textContent = text;
    by("heat-open").hidden = false;
    by("heat-open").onclick = () => choose("node", node, true);
  },
  (node) => choose("node", node, true),
);

async function loadHeat() {
  const query = new URLSearchParams({ top: by("heat-top").value });
  if (by("heat-resource").value) query.set("resource", by("heat-resource").value);
  heat.show(await ask(`v1/heat-map?${query}`), now);
}

async function loadForecast() {
  if (!chosen) return;
  const parts = chosen.kind === "node" ? [chosen.name] : chosen.name.split("/");
  const path = parts.map(encodeURIComponent).join("/");
  const asked = chosen;
  const report = chosen.kind === "node" ? ask(`v1/nodes/${path}`) : null;
  const [found, causes] = await Promise.all([ask(`v1/${chosen.kind}s/${path}/forecast`), report]);
  if (asked !== chosen) return; // another one was chosen meanwhile
  forecast = found;
  showForecast();
  showCauses(causes);
}

function rowOf(...cells) {
  const row = element("tr");
  row.append(...cells.map((text, number) => element("td", text, number ? {} : { class: "name" })));
  return row;
}

// What makes the peak of a node: services by their share, and where its largest pods would be better off.
function showCauses(report) {
  by("causes").hidden = !report?.peak;
  if (by("causes").hidden) return;
  const { peak } = report;
  by("causes-title").textContent =
    `What makes the expected peak of ${report.name} in the ${report.peak_hours}, and what helps: ` +
    `${percent(peak.share)} of ${peak.resource} at ${when(peak.at, report.now)}`;
  by("causes-services").tBodies[0].replaceChildren(
    ...report.services.slice(0, HOTTEST).map((one) =>
      rowOf(one.service, String(one.pods), amount(one.usage, peak.unit), percent(one.share))),
    rowOf("besides pods", "", amount(report.besides_pods, peak.unit), ""),
  );
  by("causes-pods").tBodies[0].replaceChildren(...report.largest.map(({ pod, usage, better, why_not }) => {
    const moved = better === null ? [why_not, "", ""] : [
      better.node,
      `${percent(peak.share)} → ${percent(better.here_without.share)}`,
      `${percent(better.there_before.share)} → ${percent(better.there_with.share)}`,
    ];
    return rowOf(pod, amount(usage, peak.unit), ...moved);
  }));
}

function showForecast() {
  if (!forecast) return;
  const pods = chosen.kind === "node" ? "pods on this node" : "pods of this service, together";
  by("curves-title").textContent = `Predicted and actual usage: ${forecast.name}`;
  by("curves-about").textContent =
    [`${forecast.pods} ${pods}`, LEVELS[forecast.level].join(": "), ...forecast.notes].join(" · ");
  const width = Math.max(300, by("charts").clientWidth);
  by("charts").replaceChildren(...forecast.curves.map((curve) => chartBlock(curve, forecast.starts, now, width)));
  by("charts").dataset.ready = forecast.name;
  const select = by("heat-resource");
  if (chosen.kind === "node" && select.options.length === 1) {
    select.append(...forecast.curves.map((curve) => element("option", curve.resource, { value: curve.resource })));
  }
}

async function choose(kind, name, scroll) {
  chosen = { kind, name };
  by("choice").value = name;
  history.replaceState(null, "", `${location.search}#${kind}=${encodeURIComponent(name)}`);
  try {
    await loadForecast();
    showBanner(null);
    if (scroll) by("curves").scrollIntoView({ behavior: "smooth" });
  } catch (error) {
    trouble(error);
  }
}

function trouble(error) {
  if (error instanceof Unauthorized) {
    by("token-form").hidden = false;
    showBanner(sessionStorage.getItem("token") ? error.message : null);
    return;
  }
  // A failed fetch is a TypeError, one that took too long a DOMException; what the scorer itself said is an Error.
  const unreachable = error instanceof TypeError || error instanceof DOMException || error instanceof SyntaxError;
  const what = unreachable ? "The scorer cannot be reached." : error.message;
  showBanner(what + (lastGood ? ` This is the picture of ${lastGood}.` : ""));
}

async function refresh() {
  try {
    const status = await ask("v1/status");
    by("token-form").hidden = true;
    showStatus(status);
    if (!status.ready) {
      showBanner(null);
      return;
    }
    const hottest = ask(`v1/nodes?sort=peak&top=${HOTTEST}`);
    const [nodes, found, services, moves] =
      await Promise.all([ask("v1/nodes"), hottest, ask("v1/services"), rebalancing(ask), loadHeat()]);
    const first = showHottest(found.nodes, found.now);
    showChoices(nodes.nodes, services.services);
    showRebalancing(moves);
    if (!chosen && first !== undefined) {
      chosen = { kind: "node", name: first };
      by("choice").value = first;
    }
    await loadForecast();
    lastGood = `${day(status.now)}, ${clock(status.now)}`;
    showBanner(null);
    document.body.dataset.ready = "true";
  } catch (error) {
    trouble(error);
  }
}

function fromAddress() {
  const [kind, name] = location.hash.slice(1).split("=");
  if ((kind === "node" || kind === "service") && name) chosen = { kind, name: decodeURIComponent(name) };
}

by("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", by("token").value.trim());
  by("token").value = "";
  refresh();
});
by("report").addEventListener("click", (event) => {
  if (!sessionStorage.getItem("token")) return;
  event.preventDefault();
  openReport();
});
by("choose").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = by("choice").value.trim();
  if (name) choose(name.includes("/") ? "service" : "node", name, false);
});
for (const id of ["heat-resource", "heat-top"]) by(id).addEventListener("change", () => loadHeat().catch(trouble));
window.addEventListener("resize", showForecast);
window.addEventListener("hashchange", () => {
  fromAddress();
  loadForecast().catch(trouble);
});

drawLegend(by("legend"));
onChangeOfMode(() => drawLegend(by("legend")));
fromAddress();
(async function again() {
  await refresh();
  setTimeout(again, REFRESH);
})();
