"""An explanation as people read it: one table of nodes, one of what each score contributed, and remarks."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from extender.feasibility import Feasibility
from forecast.resources import RESOURCES
from scorer.answers import Explanation, Peak

__all__ = ["amount", "explanation_tables", "feasibility_lines", "remarks"]

_PREFIXES = ((2.0**40, "Ti"), (2.0**30, "Gi"), (2.0**20, "Mi"), (2.0**10, "ki"))


def amount(value: float, unit: str) -> str:
    """In real units: 4.21 cores, 12.3 GiB, 20.4 MB/s."""
    if unit == "cores":
        return f"{value:.2f} cores"
    if unit == "bytes":
        for size, prefix in _PREFIXES:
            if abs(value) >= size:
                return f"{value / size:.1f} {prefix}B"
        return f"{value:.0f} B"
    for size, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.1f} {prefix}B/s"
    return f"{value:.0f} B/s"


def explanation_tables(explanation: Explanation) -> list[Table]:
    """Nodes, best first; and, where more than one score counts, what each contributed."""
    nodes = Table(
        title=escape(f"{explanation.pod} ({explanation.service}) on {explanation.n_nodes} nodes, best first"),
        title_justify="left",
    )
    for column, right in (
        ("node", False),
        ("score", True),
        ("peak now", True),
        ("peak with the pod", True),
        ("", False),
    ):
        nodes.add_column(column, justify="right" if right else "left", no_wrap=column == "node")
    for node in explanation.nodes:
        after = node.peak_with
        notes = "; ".join([*([_when(after)] if after else []), *node.notes])
        nodes.add_row(escape(node.node), f"{node.score:.1f}", _peak(node.peak_before), _peak(after), escape(notes))
    tables = [nodes]
    if any(len(node.contributions) > 1 for node in explanation.nodes):
        parts = Table(title="What each score contributes (score x weight / all weights)", title_justify="left")
        parts.add_column("node", no_wrap=True)
        for part in explanation.nodes[0].contributions:
            parts.add_column(f"{part.name} x {part.weight:g}", justify="right")
        for node in explanation.nodes:
            parts.add_row(escape(node.node), *(f"{part.points:.1f} ({part.score:.0f})" for part in node.contributions))
        tables.append(parts)
    return tables


def remarks(explanation: Explanation) -> list[str]:
    """What else one should know, a line each."""
    lines = []
    if explanation.margin is not None:
        lines.append(f"runner-up: {explanation.runner_up}, {explanation.margin:.2f} points behind")
    age = _age(explanation.model_age_seconds)
    model = f"model {explanation.model_version}, {age} old" if explanation.model_version else "no model"
    measured = _age(explanation.metrics_age_seconds)
    lines.append(f"{model}; usage {'measured ' + measured + ' ago' if measured else 'not measured'}")
    lines.append(f"degradation level {int(explanation.level)} ({explanation.level.name.lower()})")
    lines += [f"  {reason}" for reason in explanation.reasons]
    if explanation.policy_because:
        lines.append(f"policy {explanation.policy} ({explanation.policy_because})")
    if not explanation.service_known:
        lines.append("the model does not know this service: predicted from its requests")
    units = {resource.name: resource.unit for resource in RESOURCES}
    used = ", ".join(f"{name} {amount(value, units[name])}" for name, value in explanation.virtual_request.items())
    lines.append(f"virtual request ({explanation.virtual_request_source}): {used}")
    return lines


def _peak(peak: Peak | None) -> str:
    if peak is None:
        return "–"
    share = "" if peak.share is None else f"{100 * peak.share:.0f} % "
    return f"{share}{peak.resource}, {amount(peak.expected, peak.unit)}"


def _when(peak: Peak) -> str:
    bound = "" if peak.bound is None else f", at most {amount(peak.bound, peak.unit)}"
    return f"{peak.at:%a %H:%M}{bound}"


def _age(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.0f} h"
    )


def feasibility_lines(feasible: Feasibility) -> list[str]:
    """Where the pod could go, and why not elsewhere."""
    helps = {True: "evicting pods may help", False: "evicting pods does not help"}
    lines = [f"{len(feasible.nodes)} of {feasible.n_nodes} nodes pass all filters"]
    return lines + [
        f"  {one.nodes} rejected by {one.filter}: {one.reason} ({helps[one.preemptible]})"
        for one in feasible.rejections
    ]
