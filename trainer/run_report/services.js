"use strict";
(() => {
  const STEP = 100;  // rows drawn at a time: thousands at once would freeze the page
  const data = JSON.parse(document.getElementById("services").textContent);
  const byId = (id) => document.getElementById(id);
  const value = (position) => (row) => row[4][resource][position];
  const columns = [
    ["service", (row) => row[0]],
    ["replicas", (row) => Math.round(10 * row[1]) / 10],
    ["", (row) => row[2]],
    ["days", (row) => row[3]],
    ["mean", value(0), true],
    ["expected peak", value(1), true],
    ["0.95 bound", value(2), true],
    ["peak weight", value(4), true],
    ["± error", value(5)],
    ["identified", value(6)],
    ["predictors", value(3)],
  ];
  let resource = 0, sorted = 5, descending = true, shown = STEP, matching = [];

  function amount(number, unit) {
    if (unit === "cores") return `${Number(number.toPrecision(3))} cores`;
    const [base, prefixes, suffix] = unit === "bytes"
      ? [1024, ["", "Ki", "Mi", "Gi", "Ti"], "B"] : [1000, ["", "k", "M", "G", "T"], "B/s"];
    let power = 0;
    while (Math.abs(number) >= base && power < prefixes.length - 1) { number /= base; power += 1; }
    return `${Number(number.toPrecision(3))} ${prefixes[power]}${suffix}`;
  }

  function text(column, found) {
    if (found === null || found === undefined) return "–";
    if (columns[column][2]) return amount(found, data.resources[resource][1]);
    if (column === 8) return `${(100 * found).toFixed(0)} %`;
    if (typeof found === "boolean") return found ? "yes" : "no";
    return String(found);
  }

  function compare(a, b) {
    const x = columns[sorted][1](a), y = columns[sorted][1](b);
    if (x === null || y === null) return (x === null) - (y === null);  // unknown ones last, either way
    const order = typeof x === "string" ? x.localeCompare(y) : x - y;
    return descending ? -order : order;
  }

  function draw() {
    const rows = matching.slice(0, shown).map((row) => {
      const line = document.createElement("tr");
      columns.forEach(([, get], column) => {
        const cell = document.createElement("td");
        cell.textContent = text(column, get(row));  // never as HTML: names come from the cluster
        line.append(cell);
      });
      return line;
    });
    byId("rows").replaceChildren(...rows);
    byId("count").textContent = `${rows.length} of ${matching.length} services`;
    byId("more").hidden = rows.length === matching.length;
  }

  function select() {
    const words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    matching = data.rows.filter((row) => {
      const where = `${row[0]} ${row[2]}`.toLowerCase();
      return words.every((word) => where.includes(word));
    }).sort(compare);
    shown = STEP;
    draw();
  }

  function head() {
    const line = document.createElement("tr");
    columns.forEach(([name], column) => {
      const cell = document.createElement("th");
      cell.className = "sortable";
      cell.textContent = name + (column === sorted ? (descending ? " ↓" : " ↑") : "");
      cell.addEventListener("click", () => {
        descending = column === sorted ? !descending : column !== 0;
        sorted = column;
        head();
        select();
      });
      line.append(cell);
    });
    byId("head").replaceChildren(line);
  }

  data.resources.forEach(([name], index) => byId("resource").append(new Option(name, String(index))));
  byId("resource").addEventListener("change", (event) => { resource = Number(event.target.value); select(); });
  byId("filter").addEventListener("input", select);
  byId("more").addEventListener("click", () => { shown += STEP; draw(); });
  head();
  select();
})();
