"""Looks at one or several clusters as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final

import msgspec
from rich.table import Table

from base.html_report import html_report
from forecast_scheduler.commands.look.details import detail_tables
from forecast_scheduler.commands.look.screen import head, help_rows, made_by, not_known_rows
from forecast_scheduler.commands.look.several import clusters_table
from forecast_scheduler.reports.money import amount_of_money, nodes_text
from forecast_scheduler.reports.table_text import cells_of, heads_of
from scorer.answers import Peak
from scorer.highest_peak import bound_share, clock, share_of
from scorer.load_scale import FULL_SHARE, HIGHEST_SHARE, percent

_SERVICES: Final = 3


def look_page(looks: Sequence[Mapping[str, Any]]) -> str:
    """One page with the summary of all clusters, if there are several, and each of them in full."""
    names = [one["cluster"] for one in looks]
    return html_report(
        "forecast_scheduler/commands/look/look.html.j2",
        title=f"A look at {names[0]}" if len(names) == 1 else f"A look at {len(names)} clusters",
        summary=None if len(looks) == 1 else _table(clusters_table(looks)),
        clusters=[_cluster(one) for one in looks],
    )


def _cluster(figures: Mapping[str, Any]) -> dict[str, Any]:
    if "error" in figures:
        return {"name": figures["cluster"], "error": figures["error"]}
    today = datetime.fromisoformat(figures["made_at"]).date()
    hot = 1.0 if figures["nodes"] is None else figures["nodes"]["hot_share"]
    return {
        "name": figures["cluster"],
        "error": "",
        "head": "; ".join(head(figures)),
        "tiles": list(_tiles(figures)),
        "helps": list(help_rows(figures)),
        "bars": [
            (title, [_bar(node, today, hot) for node in figures[section]["nodes"]])
            for section, title in (("tonight", "The hottest nodes tonight"), ("week", "The hottest nodes of the week"))
            if figures[section] is not None
        ],
        "hot": _on_scale(hot),
        "tables": [_table(table) for table in detail_tables(figures)],
        "uncertain": [*not_known_rows(figures), *_findings(figures)],
        "remarks": figures["remarks"],
        "next": figures["next"],
        "made_at": f"{datetime.fromisoformat(figures['made_at']):%Y-%m-%d %H:%M}",
        "zone": figures["history"]["time_zone"],
    }


def _findings(figures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for one in [] if figures["doctor"] is None else figures["doctor"]["findings"]:
        yield one["finding"], f"{one['what']}. What to do: {one['what_to_do']}."


def _tiles(figures: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Title, what is today ('' = nothing to compare with), and what would be."""
    if (nodes := figures["nodes"]) is not None:
        yield f"nodes over {percent(nodes['hot_share'])} tonight", "", f"{nodes['hot_tonight']} of {nodes['n_nodes']}"
    if (moves := figures["moves"]) is not None:
        yield "hot node half hours, before and after the moves", str(moves["hot_before"]), str(moves["hot_after"])
    if (placing := figures["placing"]) is not None:
        native, ours = (percent(placing["rules"][rule]["hot_share"], digits=2) for rule in ("native", "forecast"))
        yield "share of hot half hours, placed by requests and by the forecast", native, ours
    if (capacity := figures["capacity"]) is not None and capacity["nodes"]["forecast"] is not None:
        yield (
            "nodes, recorded and needed with the forecast",
            str(capacity["recorded"]),
            str(capacity["nodes"]["forecast"]),
        )
    if (requests := figures["requests"]) is not None:
        today, then = (requests["savings"][f"cores_{when}"] for when in ("today", "recommended"))
        yield "cores requested, today and recommended", f"{today:,.0f}", f"{then:,.0f}"
    if (money := figures["money"]) is not None and money["nodes_with_price"]:
        cost = amount_of_money(money["per_month"], money["currency"])
        yield f"a month for {nodes_text(money['nodes_with_price'])}, an estimate", "", cost


def _bar(node: Mapping[str, Any], today: date, hot: float) -> dict[str, Any]:
    """A node, with its peak and bound as shares of the width of the scale."""
    peak = None if node["peak"] is None else msgspec.convert(node["peak"], Peak)
    share, bound = share_of(peak), None if peak is None else bound_share(peak)
    load = share or 0.0
    return {
        "name": node["name"],
        "words": "no forecast" if peak is None else _words(peak, today),
        "width": _on_scale(load),
        "mark": None if bound is None else _on_scale(bound),
        "colour": "full" if load > FULL_SHARE else "hot" if load > hot else "good",
        "made_by": made_by(node["services"], most=_SERVICES),
    }


def _words(peak: Peak, today: date) -> str:
    return (
        f"{percent(share_of(peak))} of {peak.resource} at {clock(peak.at, today)}, bound {percent(bound_share(peak))}"
    )


def _on_scale(share: float) -> str:
    return f"{100 * min(share / HIGHEST_SHARE, 1.0):.1f}%"


def _table(table: Table) -> dict[str, Any]:
    texts = [number for number, column in enumerate(table.columns) if column.justify == "left"]
    return {"title": str(table.title), "header": heads_of(table), "rows": list(cells_of(table)), "texts": texts}
