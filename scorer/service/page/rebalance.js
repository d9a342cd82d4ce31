// Which pods should leave nodes that will be hot tonight, and what is done about it. Only a rebalancer answers that: what a
// process answers is in its openapi.json, so that no request is made that it would refuse.
import { clock, day, element } from "./format.js";

const PATH = "/v1/rebalance";
const SHOWN = 50;
const MODES = {
  off: "it moves nothing and records nothing",
  shadow: "it records a plan each night and grades it the day after; it moves nothing",
  on: "it moves these pods by itself, and grades the night the day after",
};
const by = (id) => document.getElementById(id);

let isAnswered = null; // null = not known yet

// What the rebalancer says; null where this process is none, or the caller may not read the list of its routes. Where it fails
// the rest of the page goes on.
export async function rebalancing(ask) {
  if (isAnswered === null) {
    const found = await ask("openapi.json").catch(() => null);
    if (found === null) return null;
    isAnswered = Object.hasOwn(found.paths, PATH);
  }
  if (!isAnswered) return null;
  return ask(PATH.slice(1)).catch((error) => ({ mode: "", because: "", trouble: error.message, plan: null }));
}

export function showRebalancing(state) {
  by("rebalance").hidden = state === null;
  if (state === null) return;
  const { plan } = state;
  const moves = plan?.moves ?? [];
  by("rebalance-title").textContent = plan ? title(moves.length) : "Moves that would help are not known yet";
  by("rebalance-about").textContent = plan ? about(plan) : "There is no usable forecast, or the first look is under way.";
  by("rebalance-mode").textContent =
    [
      state.mode && `Mode in force: ${state.mode}: ${MODES[state.mode] ?? ""}`,
      state.because,
      state.trouble && `held up: ${state.trouble}`,
    ].filter(Boolean).join(". ");
  by("rebalance-moves").hidden = moves.length === 0;
  by("rebalance-moves").tBodies[0].replaceChildren(...moves.slice(0, SHOWN).map(rowOf));
  by("rebalance-more").hidden = moves.length <= SHOWN;
  by("rebalance-more").textContent = `and ${moves.length - SHOWN} more: ${PATH} has all`;
}

function title(n) {
  if (n === 0) return "No move would help tonight";
  return n === 1 ? "1 move would help tonight" : `${n} moves would help tonight`;
}

function about(plan) {
  const hot =
    `Hot half hours of nodes until ${day(plan.until)}, ${clock(plan.until)}: ${plan.hot_before} as things are, ` +
    `${plan.hot_after} after the moves (${plan.at_risk_before} and ${plan.at_risk_after} by the upper bound).`;
  const { window } = plan;
  const when = window
    ? `Moves may start ${day(window.begin)} from ${clock(window.begin)} to ${clock(window.end)}.`
    : `No hours for moves: ${plan.windows_because}.`;
  return `${hot} ${when}`;
}

function rowOf(move) {
  const row = element("tr");
  const why = move.by_surge ? `${move.reason} (a second replica starts first)` : move.reason;
  row.append(
    element("td", `${move.namespace}/${move.pod}`, { class: "name" }),
    element("td", move.source),
    element("td", move.target),
    element("td", why, { class: "wide" }),
  );
  return row;
}
