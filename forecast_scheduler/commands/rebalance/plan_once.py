"""A plan from one look at a cluster, for `rebalance --plan`, and that plan on the terminal. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import tzinfo
from typing import Any, Final

from rich.table import Table

from autoscaling.prices.node_prices import NodePrices
from autoscaling.prices.worth import emptied_nodes
from base.errors import InputError
from forecast_scheduler.commands.node_prices import read_price_sources
from forecast_scheduler.commands.rebalance.open_planning import Planning, open_planning
from forecast_scheduler.commands.scorer.scorer_setup import Inputs
from forecast_scheduler.reports.money import money_lines, monthly, nodes_text
from forecast_scheduler.reports.table_format import Column, table_of
from forecast_scheduler.settings.document import Settings
from rebalancer.nights_needed import NightsNeeded
from rebalancer.plan_forms import PlanWindow, RebalanceAnswer
from rebalancer.plan_maker import MadePlan
from rebalancer.planning.move_curve import MoveCurve
from scorer.highest_peak import peak_words

_SHOWN: Final = 50
_REASONS: Final = 8
_WITH_THE_NODE: Final = ("DaemonSet", "Node")
"""Kinds of owners whose pods go with their node: the second one owns static pods."""


def plan_once(settings: Settings, inputs: Inputs) -> tuple[MadePlan, MoveCurve, dict[str, Any]]:
    """Return the plan for tonight, as the cluster is now, what more or fewer moves would do, and `plan_money`.

    Raises InputError where there is no forecast.
    """
    sources = read_price_sources(settings.prices)
    with open_planning(settings, inputs) as planning:
        made, curve = planned(planning)
        return made, curve, plan_money(planning, made, sources.price_cluster(planning.scorer.tables))


def planned(planning: Planning) -> tuple[MadePlan, MoveCurve]:
    """The same of a cluster that was read whole."""
    made, curve = planning.maker.for_tonight(), planning.maker.curve()
    if made is None or curve is None:
        raise InputError("there is no forecast to plan by: run `forecast-scheduler train`, and pass its --models")
    return made, curve


def plan_money(planning: Planning, made: MadePlan, prices: NodePrices) -> dict[str, Any]:
    """What the moves save: the price of nodes that no pod is left on. As `money` of `rebalance --plan --json`."""
    pods_on: dict[str, list[str]] = {}
    with planning.scorer.tables.reading() as cluster:
        for uid, pod in cluster.state.pods.items():
            if pod.node and pod.owner.kind not in _WITH_THE_NODE:
                pods_on.setdefault(pod.node, []).append(uid)
    emptied = emptied_nodes(pods_on, ((move.uid, move.source, move.target) for move in made.moves))
    cost = prices.cost(emptied)
    return {
        **prices.to_json(),
        "emptied_nodes": list(emptied),
        "emptied_without_price": cost.unpriced,
        "saved_per_month": cost.amount if cost.priced or not emptied else None,
    }


def plan_money_lines(money: Mapping[str, Any], n_moves: int) -> Iterator[str]:
    """What the moves save, and that it is nothing where no node gets empty."""
    yield from money_lines(money, *([_saved_words(money)] if n_moves else []))


def _saved_words(money: Mapping[str, Any]) -> str:
    emptied, saved = len(money["emptied_nodes"]), money["saved_per_month"]
    if not emptied:
        return f"no node gets empty by these moves: {monthly(0, money)} less, they keep nodes cool"
    if saved is None:
        return f"{nodes_text(emptied)} could go, without a price"
    missing = money["emptied_without_price"]
    without = f", of {nodes_text(emptied - missing)}: the others have no price" if missing else ""
    return f"{nodes_text(emptied)} could go = {monthly(saved, money)} less{without}"


def plan_table(answer: RebalanceAnswer) -> Table:
    """One row for each move, in their order."""
    columns = (
        Column(">#", lambda row: row[0]),
        Column("pod", lambda row: f"{row[1].namespace}/{row[1].pod}"),
        Column("from", lambda row: row[1].source),
        Column("to", lambda row: row[1].target),
        Column(">gain", lambda row: f"{row[1].gain:.1f}"),
        Column("why", lambda row: row[1].reason + " (a second replica starts first)" * row[1].by_surge),
    )
    return table_of(f"{len(answer.moves)} moves", columns, enumerate(answer.moves[:_SHOWN], start=1))


def plan_lines(answer: RebalanceAnswer, zone: tzinfo) -> Iterator[str]:
    """What the table does not say. zone: of the cluster"""
    if len(answer.moves) > _SHOWN:
        yield f"and {len(answer.moves) - _SHOWN} more moves: --json FILE has all"
    since, until = (f"{at.astimezone(zone):%a %H:%M}" for at in (answer.since, answer.until))
    if (missed := answer.missed) is not None:
        yield (
            f"{missed.hot} hot node half hours come before the first window, {since}; {missed.node} has an "
            f"{peak_words(missed.peak, answer.made_at.date())}; no planned move can prevent them, "
            f"`forecast-scheduler relieve {missed.node}` can"
        )
    hours = f"until {until}" if answer.since == answer.made_at else f"from {since} to {until}"
    yield (
        f"hot node half hours {hours}: {answer.hot_before} expected, {answer.hot_after} after the moves; "
        f"{answer.at_risk_before} by the upper bound, {answer.at_risk_after} after them"
    )
    gain = answer.heat_before - answer.heat_after
    if not answer.moves:
        yield _why_nothing(answer)
    else:
        yield (
            f"heat {answer.heat_before:.1f} -> {answer.heat_after:.1f}, {gain:.1f} less; "
            f"no plan within the budget saves more than {answer.most_gain:.1f}"
        )
    windows = ", ".join(_words(one, zone) for one in answer.windows) or "none"
    yield f"windows for moves: {windows} ({answer.windows_because})"
    if not answer.windows and answer.hot_before:
        yield "no window comes before this peak: no move of the plan can be made; `forecast-scheduler relieve NODE` can"
    kept = sum(answer.kept.values())
    if kept:
        most = list(answer.kept.items())[:_REASONS]
        yield f"{kept} of {answer.n_pods} pods may not be moved: {'; '.join(f'{n}: {why}' for why, n in most)}"


def curve_lines(curve: MoveCurve, nights: NightsNeeded) -> Iterator[str]:
    """What more or fewer moves would do, and in how many nights."""
    yield "moves and the hot node half hours they leave: " + ", ".join(
        f"{one.moves}: {one.hot}" for one in curve.points
    )
    if not nights.moves:
        return
    allowed = f"{nights.limit} allows {nights.per_night} moves a night"
    if nights.nights is None:
        yield f"{allowed}: raise it"
    elif nights.nights > 1 or nights.in_one:
        raised = ", ".join(f"{name}: {value:g}" for name, value in nights.in_one.items())
        at_best = f"{nights.nights} night{'s' if nights.nights > 1 else ''} at best"
        yield f"{nights.moves} moves mend nearly all of it; {allowed}: {at_best}; one night would take {raised}"


def _why_nothing(answer: RebalanceAnswer) -> str:
    if answer.heat_before <= 0:
        return "no node is expected near its limits: there is nothing to mend"
    if answer.most_gain <= 0:
        return "no move within the budget helps: all pods of the nodes in question must stay"
    return (
        f"no move is worth its cost: all plans together gain at most {answer.most_gain:.1f} of "
        f"{answer.heat_before:.1f} node half hours of heat"
    )


def _words(window: PlanWindow, zone: tzinfo) -> str:
    return f"{window.begin.astimezone(zone):%a %H:%M} to {window.end.astimezone(zone):%H:%M}"
