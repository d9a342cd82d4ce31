"use strict";
// Draws the curves and figures of the page from its data; Plotly is in the page. Asks nothing of anybody.
(() => {
  const SLOTS = 48, MISSING = 0xffff, SMALL = { l: 52, r: 12, t: 8, b: 40 };
  const WORDS = { issued: "as issued", later: "model published later", rehearsed: "rehearsed" };
  const data = JSON.parse(document.getElementById("peaks").textContent);
  const byId = (id) => document.getElementById(id);
  const element = (tag, properties) => Object.assign(document.createElement(tag), properties);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const percent = (value, digits = 0) => `${(100 * value).toFixed(digits)} %`;
  const weekday = (day) => new Date(`${day}T00:00Z`).toLocaleDateString("en-GB",
    { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" });
  const coming = data.days.length - 1;
  const times = data.days.flatMap((day) => Array.from({ length: SLOTS }, (_, slot) =>
    `${day} ${String(Math.floor(slot / 2)).padStart(2, "0")}:${slot % 2 ? "30" : "00"}`));

  function unpack(piece) {  // -> [actual, expected, bound], base units, null = unknown
    const bytes = Uint8Array.from(atob(piece.counts), (character) => character.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    return [0, 1, 2].map((row) => Array.from({ length: times.length }, (_, i) => {
      const count = view.getUint16(2 * (row * times.length + i), true);
      return count === MISSING ? null : count * piece.step;
    }));
  }

  const PREFIXED = {  // units that are written with a prefix; every other is written as it is
    "bytes": [1024, ["B", "KiB", "MiB", "GiB", "TiB"]],
    "bytes/s": [1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]],
  };

  function scale(unit, highest) {  // divisor and name of the unit people would write
    if (!Object.hasOwn(PREFIXED, unit)) return [1, unit];
    const [base, names] = PREFIXED[unit];
    const power = Math.min(names.length - 1, Math.max(0, Math.floor(Math.log(Math.max(highest, 1)) / Math.log(base))));
    return [base ** power, names[power]];
  }
  const amount = (value, unit) => {
    const [divisor, name] = scale(unit, value);
    return `${Number((value / divisor).toPrecision(3))} ${name}`;
  };

  function layout(more) {
    const axis = { gridcolor: colour("line"), zeroline: false, linecolor: colour("line"), automargin: true };
    const { xaxis = {}, yaxis = {}, ...rest } = more;
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "x unified",
      font: { family: "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", size: 12, color: colour("ink") },
      hoverlabel: { bgcolor: colour("card"), bordercolor: colour("line"), font: { color: colour("ink") } },
      legend: { orientation: "h", y: -0.16, x: 0 }, margin: SMALL, ...rest,
      xaxis: { ...axis, ...xaxis }, yaxis: { ...axis, rangemode: "tozero", ...yaxis },
    };
  }
  const plot = (id, traces, more) =>
    Plotly.react(byId(id), traces, layout(more), { displayModeBar: false, responsive: true });

  // The curves of one node or service.

  function stretches(expected) {  // runs of half hours whose forecasts are of one kind: [first, end, origin]
    const found = [];
    expected.forEach((value, slot) => {
      const origin = value === null ? null : data.origins[Math.floor(slot / SLOTS)];
      const last = found.at(-1);
      const isComing = slot >= coming * SLOTS;
      if (last && last[1] === slot && last[2] === origin && isComing === last[3]) last[1] = slot + 1;
      else if (origin) found.push([slot, slot + 1, origin, isComing]);
    });
    return found;
  }

  function drawCurves() {
    const kind = byId("kind").value, resource = Number(byId("resource").value);
    const entity = data[kind].find((one) => one.name === byId("name").value.trim());
    const [resourceName, unit] = data.resources[resource];
    byId("said").textContent = entity ? "" : `Curves of “${byId("name").value}” are not in this file.`;
    if (!entity) return;
    byId("curves-title").textContent = `Curves: ${resourceName} of ${entity.name}`;
    const piece = entity.curves[resource];
    if (!piece) byId("said").textContent = `${resourceName} was neither measured nor predicted here.`;
    const raw = piece ? unpack(piece) : [[], [], []];
    const capacity = entity.capacity ? entity.capacity[resource] : null;
    const highest = raw.reduce((most, curve) => curve.reduce((a, b) => Math.max(a, b ?? 0), most), 0);
    const [divisor, unitName] = scale(unit, highest);
    const [actual, expected, bound] = raw.map((curve) => curve.map((value) => (value === null ? null : value / divisor)));
    const traces = [], told = new Set();
    for (const [first, end, origin, isComing] of stretches(expected)) {
      const x = times.slice(first, end), line = { color: colour("expected"), width: 2.2 };
      if (origin !== "issued") line.dash = "5px,3px";
      const name = isComing ? "expected, coming day" : `expected, ${WORDS[origin]}`;
      const group = isComing ? "coming" : origin;
      traces.push({ x, y: expected.slice(first, end), name, line, mode: "lines", legendgroup: group,
        showlegend: !isComing && !told.has(group), hovertemplate: "%{y:.4~g} expected<extra></extra>" });
      traces.push({ x, y: bound.slice(first, end), name: "up to the 0.95 bound", mode: "lines", fill: "tonexty",
        fillcolor: colour("band"), line: { color: colour("expected"), width: 0.6 }, legendgroup: "bound",
        showlegend: !told.has("bound"), hovertemplate: "%{y:.4~g} bound<extra></extra>" });
      told.add(group).add("bound");
    }
    traces.push({ x: times.slice(0, coming * SLOTS), y: actual.slice(0, coming * SLOTS), name: "actual", mode: "lines",
      line: { color: colour("actual"), width: 1.3 }, hovertemplate: "%{y:.4~g} actual<extra></extra>" });
    traces.push(...peakMarks(actual, bound));
    const limits = entity.capacity_days ? entity.capacity_days[resource] : data.days.map(() => capacity);
    if (kind === "node" && limits.some((limit) => limit !== null && limit <= 2 * highest)) {
      for (const [share, name, dash] of [[1, "capacity", "dash"], [data.hot_share, percent(data.hot_share), "dot"]]) {
        const line = limits.map((limit) => (limit === null ? null : share * limit / divisor));
        traces.push({ x: times, y: times.map((_, slot) => line[Math.floor(slot / SLOTS)]), name, mode: "lines",
          line: { color: colour("limit"), width: 1.2, dash }, hoverinfo: "skip" });
      }
    }
    const from = Math.max(0, coming - Number(byId("span").value));
    const end = `${data.days[coming]} 23:30`;
    plot("curves", traces, {
      margin: { l: 60, r: 14, t: 26, b: 40 },
      xaxis: { type: "date", range: [`${data.days[from]} 00:00`, end], tickformat: "%a %d %b",
        hoverformat: "%a %d %b %H:%M" },
      yaxis: { title: { text: unitName } },
      shapes: [{ type: "rect", xref: "x", yref: "paper", x0: `${data.days[coming]} 00:00`, x1: end, y0: 0, y1: 1,
        fillcolor: colour("coming"), line: { width: 0 }, layer: "below" }],
      annotations: [{ x: `${data.days[coming]} 12:00`, y: 1.0, yref: "paper", yanchor: "bottom", showarrow: false,
        text: `${weekday(data.days[coming])}, to come`, font: { color: colour("soft"), size: 12 } }],
    });
    const limit = capacity === null ? "" : `, capacity ${amount(capacity, unit)}`;
    byId("origin-note").textContent = `${entity.name}${limit}. ${originNote()}`;
    byId("curves").dataset.ready = `${kind} ${entity.name} ${resourceName}`;
  }

  function peakMarks(actual, bound) {  // each day's highest half hour, and whether its bound held
    const marks = { held: [], over: [] };
    for (let day = 0; day < coming; day += 1) {
      const of = (curve) => curve.slice(day * SLOTS, (day + 1) * SLOTS);
      const came = of(actual), limit = of(bound).filter((value) => value !== null);
      if (!limit.length || came.every((value) => value === null)) continue;
      const peak = Math.max(...came.map((value) => value ?? 0));
      marks[peak <= Math.max(...limit) ? "held" : "over"].push([times[day * SLOTS + came.indexOf(peak)], peak]);
    }
    return [["held", "peak within its bound", "actual", "circle"], ["over", "peak above its bound", "over", "diamond"]]
      .filter(([key]) => marks[key].length)
      .map(([key, name, tone, symbol]) => ({ x: marks[key].map((mark) => mark[0]), y: marks[key].map((mark) => mark[1]),
        name, mode: "markers", marker: { color: colour(tone), size: key === "over" ? 9 : 6, symbol }, hoverinfo: "skip" }));
  }

  function originNote() {
    const past = data.origins.slice(0, coming), count = (origin) => past.filter((one) => one === origin).length;
    const parts = [
      [count("issued"), "as it was issued"], [count("later"), "by a model of the days before that was published later"],
      [count("rehearsed"), "rehearsed: fitted for this page on the days before them"], [count("none"), "none"],
    ].filter(([days]) => days);
    return `Forecast of the ${past.length} past days: ${parts.map(([days, text]) => `${days} ${text}`).join("; ")}.`;
  }

  function showNames() {
    const kind = byId("kind").value;
    byId("names").replaceChildren(...data[kind].map((one) => element("option", { value: one.name })));
    byId("name").value = data[kind].length ? data[kind][0].name : "";
    drawCurves();
  }

  function choose(name, resource) {
    byId("kind").value = "node";
    showNames();
    byId("name").value = name;
    byId("resource").value = String(data.resources.findIndex(([one]) => one === resource));
    drawCurves();
    byId("curves-title").scrollIntoView({ behavior: "smooth" });
  }

  // The table of the coming day.

  function showHottest() {
    byId("hottest-title").textContent = `Hottest nodes on ${weekday(data.days[coming])}`;
    const units = Object.fromEntries(data.resources);
    const widest = Math.max(1, ...data.hottest.map((one) => one.bound_share));
    byId("hottest").tBodies[0].replaceChildren(...data.hottest.map((one) => {
      const row = document.createElement("tr");
      const cells = [null, one.at, `${amount(one.expected, units[one.resource])} ${one.resource}`,
        amount(one.bound, units[one.resource]), null, `${percent(one.share)} to ${percent(one.bound_share)}`];
      row.append(...cells.map((text) => element("td", { textContent: text ?? "" })));
      const open = element("button", { type: "button", textContent: one.node });
      open.addEventListener("click", () => choose(one.node, one.resource));
      row.cells[0].append(open);
      const bar = element("span", { className: one.share > 1 ? "bar over" : one.share > data.hot_share ? "bar hot" : "bar" });
      for (const [tag, name, share] of [["i", "upto", one.bound_share], ["i", "mean", one.share], ["u", "", 1]]) {
        const part = element(tag, { className: name });
        part.style[tag === "u" ? "left" : "width"] = `${100 * share / widest}%`;
        bar.append(part);
      }
      row.cells[4].append(bar);
      return row;
    }));
    if (!data.hottest.length) byId("hottest-section").hidden = true;
  }

  // Figures over days.

  function byResource(rows, key) {
    return data.resources.filter(([name]) => rows.some((row) => row[key][name] !== undefined)).map(([name]) => ({
      x: rows.map((row) => row.day), y: rows.map((row) => row[key][name] ?? null), name, mode: "lines+markers",
      line: { color: colour(name) || colour("other"), width: 1.8 }, marker: { size: 4 }, hovertemplate: `${key === "loss" || key === "peak_cv"
        ? "%{y:.3f}" : "%{y:.1%}"}`,
    }));
  }

  function drawFigures() {
    const days = { xaxis: { type: "date", tickformat: "%d %b", hoverformat: "%a %d %b", nticks: 8 } };
    const target = { shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: 0.95, y1: 0.95,
      line: { color: colour("soft"), dash: "dot", width: 1.2 } }] };
    const shares = { tickformat: ".0%" }, upToAll = { tickformat: ".0%", rangemode: "normal" };
    const from = (rows, key) => Math.min(0.8, ...rows.flatMap((row) => Object.values(row[key])));
    const empty = (rows, text) => (rows.length ? {} : { annotations: [{ text, showarrow: false, xref: "paper",
      yref: "paper", x: 0.5, y: 0.5, font: { color: colour("soft") } }] });
    const none = "No past day has a forecast yet";
    const { scores, service_scores: services, by_day: nodes } = data;
    plot("error", byResource(scores, "error"), { ...days, ...empty(scores, none), yaxis: { tickformat: ".1%" } });
    plot("coverage", byResource(scores, "coverage"), { ...days, ...target, ...empty(scores, none),
      yaxis: { ...upToAll, range: [from(scores, "coverage") - 0.02, 1.01] } });
    plot("loss", byResource(services, "loss"), { ...days, ...empty(services, none) });
    plot("service-coverage", byResource(services, "coverage"), { ...days, ...target, ...empty(services, none),
      yaxis: { ...upToAll, range: [from(services, "coverage") - 0.02, 1.01] } });
    const adoption = data.adopted === null ? {} : {
      shapes: [{ type: "line", x0: data.adopted, x1: data.adopted, yref: "paper", y0: 0, y1: 1,
        line: { color: colour("good"), width: 2, dash: "dash" } }],
      annotations: [{ x: data.adopted, y: 1, yref: "paper", text: "advice followed", showarrow: false, xanchor: "left",
        xshift: 4, font: { color: colour("good") } }],
    };
    plot("variation", byResource(nodes, "peak_cv"), { ...days, ...adoption });
    plot("hot", [{ x: nodes.map((row) => row.day), y: nodes.map((row) => row.hot_share), type: "bar", name: "hot",
      marker: { color: colour("disk") }, hovertemplate: "%{y:.2%}<extra></extra>" }],
    { ...days, ...adoption, yaxis: shares });
    document.body.dataset.ready = "true";
  }

  byId("resource").replaceChildren(...data.resources.map(([name], index) =>
    element("option", { value: String(index), textContent: name })));
  byId("kind").addEventListener("change", showNames);
  for (const id of ["name", "resource", "span"]) byId(id).addEventListener("change", drawCurves);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { drawCurves(); drawFigures(); });
  showHottest();
  showNames();
  drawFigures();
})();
