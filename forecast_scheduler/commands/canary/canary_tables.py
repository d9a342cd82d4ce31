"""What bindings do to predicted peaks, as people and programs read it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any, Final

from rich.markup import escape
from rich.table import Table

from admission.templates.effects import BindingEffect, EffectGroup, GroupEffect
from forecast_scheduler.commands.canary.trial_for_all import WhatIf, mean_peaks
from forecast_scheduler.commands.live_placing import BestNode
from forecast_scheduler.reports.table_format import titled_table
from scorer.load_scale import percent

FORECAST_ONLY: Final = (
    "Peaks are what the model expects in the next 24 hours, not measured ones: a forecast, no experiment's proof; "
    "intervals reckon with chance among nodes, not with errors of the model."
)

_NAMES: Final = {EffectGroup.SHAPED: "shaped", EffectGroup.CANARY: "canary", EffectGroup.CONTROL: "control"}


def effects_table(effects: Sequence[BindingEffect], hot: float) -> Table:
    """One row for each group of each binding."""
    columns = ("binding", "pods are", ">pods", ">nodes", ">mean peak", ">highest peak")
    above = f">on nodes above {percent(hot)}"
    title = "Expected peak of the nodes that pods sit on, by binding"
    table = titled_table(title, *columns, above, wrap_first=False)
    for effect in effects:
        for group in EffectGroup:
            if (of := effect.groups.get(group)) is not None:
                table.add_row(escape(effect.binding), _NAMES[group], *_cells(of))
    return table


def difference_lines(effects: Sequence[BindingEffect]) -> list[str]:
    """Return the difference of canary and control, or why it is unknown."""
    lines = []
    for effect in effects:
        of = effect.difference
        if of is None:
            lines.append(f"{effect.binding}: {effect.untold}")
            continue
        interval = f"95 % interval {100 * of.low:+.1f} to {100 * of.high:+.1f}"
        verdict = "" if of.is_clear else "; it may as well be chance"
        lines.append(
            f"{effect.binding}: canary pods sit on nodes whose peak is {100 * of.mean:+.1f} points from that of the "
            f"control pods' nodes ({interval}){verdict}"
        )
    return lines


def what_if_table(binding: str, found: Sequence[WhatIf]) -> Table:
    """One row for each service of the control group."""
    title = f"Were {binding} applied to all: where one more pod of each service of the control group would go"
    columns = ("service", ">control pods", "without the template", "with it")
    table = titled_table(escape(title), *columns, wrap_first=False)
    for one in found:
        cells = (one.untold, "") if one.untold else (_node(one.without), _node(one.shaped))
        table.add_row(escape(one.service), str(one.pods), *map(escape, cells))
    return table


def what_if_lines(found: Collection[WhatIf], left_out: int) -> list[str]:
    """The figures in a sentence, and what they are not."""
    lines = []
    moved = sum(
        one.pods for one in found if one.without and one.shaped and one.without.node != one.shaped.node
    )  # fmt: skip
    if (means := mean_peaks(found)) is not None:
        lines.append(
            f"mean peak of these nodes: {percent(means[0])} without the template, {percent(means[1])} with it; "
            f"{moved} of {sum(one.pods for one in found)} control pods belong to services that would go elsewhere"
        )
    if left_out:
        lines.append(f"{left_out} services with fewer control pods are left out (--top)")
    lines.append("each is placed alone in the cluster as it is; all of them together would fill these nodes further")
    return lines


def figures_of(effects: Sequence[BindingEffect], found: Collection[WhatIf] | None, left_out: int = 0) -> dict[str, Any]:
    """Return the same for programs. found: None = not asked for."""
    bindings = [
        {
            "binding": effect.binding,
            "groups": {group.value: asdict(of) for group, of in effect.groups.items()},
            "difference": None if effect.difference is None else asdict(effect.difference),
            "untold": effect.untold or None,
        }
        for effect in effects
    ]
    figures: dict[str, Any] = {"bindings": bindings, "note": FORECAST_ONLY}
    if found is not None:
        means = mean_peaks(found)
        figures["what_if"] = {
            "services": [asdict(one) for one in found],
            "left_out": left_out,
            "mean_peak_without": None if means is None else means[0],
            "mean_peak_with": None if means is None else means[1],
        }
    return figures


def _cells(of: GroupEffect) -> tuple[str, ...]:
    return str(of.pods), str(of.nodes), percent(of.mean_peak), percent(of.highest_peak), percent(of.hot_share)


def _node(best: BestNode | None) -> str:
    if best is None or best.node is None:
        return "nowhere" if best is None or not best.why_not else f"nowhere: {best.why_not}"
    return best.node if best.peak_share is None else f"{best.node} ({percent(best.peak_share)})"
