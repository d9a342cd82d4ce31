"""One look at a cluster on one screen, from the document that `look --json` writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from forecast_scheduler.reports.money import look_money_lines
from forecast_scheduler.reports.table_format import amount, plain, printable, titled_table
from scorer.highest_peak import clock
from scorer.load_scale import FULL_SHARE, UNKNOWN, percent

_TONIGHT: Final = 5
_WEEK: Final = 3
_SERVICES: Final = 2
_FINDINGS: Final = 4
"""So many lines fit on a terminal of 50."""

_LABELS: Final = {
    "tonight": "tonight",
    "week": "this week",
    "placing": "placing by the forecast",
    "moves": "moves tonight",
    "requests": "better requests",
    "capacity": "nodes for this load",
    "doctor": "findings",
}


def screen(figures: Mapping[str, Any]) -> Iterator[Table | str]:
    """Yield what is shown, from top to bottom."""
    yield from head(figures)
    if (tonight := figures["tonight"]) is not None:
        nodes = figures["nodes"]
        hot = f"{nodes['hot_tonight']} of {nodes['n_nodes']} nodes are expected over {percent(nodes['hot_share'])}"
        yield from ("", nodes_table(f"Tonight: {hot}", tonight["nodes"][:_TONIGHT], figures))
    if (week := figures["week"]) is not None:
        yield from ("", nodes_table("The hottest nodes of the week", week["nodes"][:_WEEK], figures))
    yield from ("", lines_table("What would help", help_rows(figures)))
    yield from ("", lines_table("What is uncertain", uncertain_rows(figures)), "")
    for one in figures["next"]:  # as lines, which can be copied
        yield f"{one['why']}: {one['command']}"


def head(figures: Mapping[str, Any]) -> Iterator[str]:
    """Which cluster it is, and what was learned from."""
    history, nodes = figures["history"], figures["nodes"]
    size = f"{history['nodes']:,} nodes" if nodes is None else f"{nodes['n_nodes']:,} nodes, {nodes['n_pods']:,} pods"
    days = "1 day" if history["days"] == 1 else f"{history['days']} days"
    yield f"{printable(figures['cluster'])}: {size}"
    yield f"learned from {days} to {history['last_day']} ({history['time_zone']}) of {printable(figures['store'])}"


def nodes_table(title: str, nodes: Sequence[Mapping[str, Any]], figures: Mapping[str, Any]) -> Table:
    """A row for each node: its peak, and the services that make it."""
    today = datetime.fromisoformat(figures["made_at"]).date()
    table = opened(titled_table(title, "node", ">peak", ">bound", "at", "made by", wrap_first=False))
    for node in nodes:
        table.add_row(plain(node["name"]), *_peak_cells(node["peak"], today, figures), plain(made_by(node["services"])))
    return table


def _peak_cells(peak: Mapping[str, Any] | None, today: date, figures: Mapping[str, Any]) -> tuple[Text | str, ...]:
    if peak is None:
        return UNKNOWN, UNKNOWN, ""
    share, bound = peak["share"], peak["bound"]
    known = None if bound is None or not peak["capacity"] else bound / peak["capacity"]
    at = clock(datetime.fromisoformat(peak["at"]), today)
    return _shown_share(share, figures["nodes"]["hot_share"]), percent(known), f"{at} {peak['resource']}"


def _shown_share(share: float | None, hot: float) -> Text:
    """Bold when hot, red as well when full: both can be read on light and on dark."""
    hotness = 0.0 if share is None else share
    return Text(percent(share), style="bold red" if hotness > FULL_SHARE else "bold" if hotness > hot else "")


def made_by(services: Sequence[Mapping[str, Any]], *, most: int = _SERVICES) -> str:
    """The services with the largest shares of a peak."""
    return ", ".join(f"{_short(one['service'])} {percent(one['share'])}" for one in services[:most])


def _short(service: str) -> str:
    """namespace/Kind/name without the kind."""
    namespace, _, rest = service.partition("/")
    return f"{namespace}/{rest.partition('/')[2] or rest}"


def help_rows(figures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What would make the nights cooler, and by how much."""
    words: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "placing": _placing_words,
        "moves": _moves_words,
        "requests": _requests_words,
        "capacity": _capacity_words,
    }
    said: dict[str, str] = {}
    for name, of in words.items():
        found = figures[name]
        yield _LABELS[name], _why_not(figures, name, said) if found is None else of(found)
    for line in look_money_lines(figures):
        yield "money", line.removeprefix("money: ")


def _why_not(figures: Mapping[str, Any], name: str, said: dict[str, str]) -> str:
    """Why there is no such section; a reason that was said is not said again. said: the label, by reason"""
    why = str(figures["not_computed"][name])
    first = said.setdefault(why, _LABELS[name])
    return f"not known: {why}" if first == _LABELS[name] else f"not known, as {first}"


def _placing_words(found: Mapping[str, Any]) -> str:
    native, ours = (percent(found["rules"][rule]["hot_share"], digits=2) for rule in ("native", "forecast"))
    days = found["window"]["days"]
    last = "last day" if days == 1 else f"last {days} days"
    return f"hot node half hours {native} -> {ours}, had all pods of the {last} gone by it"


def _moves_words(found: Mapping[str, Any]) -> str:
    if not found["moves"]:
        return "no move is worth its cost" if found["hot_before"] else "no node is expected to be hot"
    since = f"{datetime.fromisoformat(found['since']):%a %H:%M}"
    moves = "1 move" if len(found["moves"]) == 1 else f"{len(found['moves'])} moves"
    missed = found["missed"]
    before = "" if missed is None else f"; {missed['hot']} come before: `forecast-scheduler relieve {missed['node']}`"
    return (
        f"{moves}: {found['hot_before']} -> {found['hot_after']} hot node half hours in the day from {since} "
        f"({found['budget']['moves']} moves mend nearly all){before}"
    )


def _requests_words(found: Mapping[str, Any]) -> str:
    of = found["savings"]
    cores = f"{of['cores_today']:.0f} -> {of['cores_recommended']:.0f} cores"
    count = f"{amount(of['bytes_today'], 'bytes')} -> {amount(of['bytes_recommended'], 'bytes')}"
    return f"CPU {cores}, memory {count}"


def _capacity_words(found: Mapping[str, Any]) -> str:
    ours, native = (UNKNOWN if (n := found["nodes"][rule]) is None else n for rule in ("forecast", "native"))
    return f"{ours} placed by the forecast, {native} by requests; there are {found['recorded']}"


def uncertain_rows(figures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What could not be computed, and the first findings."""
    yield from not_known_rows(figures)
    if figures["history"]["is_cold_start"]:
        yield "cold start", figures["remarks"][0]
    found = [] if figures["doctor"] is None else figures["doctor"]["findings"]
    for one in found[:_FINDINGS]:
        yield one["finding"], printable(one["what"])
    if len(found) > _FINDINGS:
        more = len(found) - _FINDINGS
        findings = "1 more finding" if more == 1 else f"{more} more findings"
        yield "", f"and {findings}: --html FILE has all, with what to do"


def not_known_rows(figures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What could not be computed, and why; of what would help, help_rows has it."""
    said: dict[str, str] = {}
    for name in ("tonight", "week", "doctor"):
        if figures[name] is None:
            yield _LABELS[name], _why_not(figures, name, said)


def lines_table(title: str, rows: Iterable[tuple[str, str]]) -> Table:
    """What is said of each of some things."""
    table = opened(titled_table(title, "about", "found", wrap_first=False))
    table.show_header = False
    for name, text in rows:
        table.add_row(name, plain(text))
    return table


def opened(table: Table) -> Table:
    """Without lines, which take a quarter of 80 columns."""
    table.box, table.pad_edge, table.title_style, table.header_style = None, False, "bold", ""
    return table
