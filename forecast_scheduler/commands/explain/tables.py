"""An explanation as people read it: one table of nodes, one of what each score contributed, and remarks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date

from rich.markup import escape
from rich.table import Table

from forecast.resources import RESOURCES, assumed_line
from forecast_scheduler.reports.table_format import amount, titled_table
from scorer.answers import Explanation, JudgementSummary, Peak
from scorer.highest_peak import bound_share, clock
from scorer.judgement import Judgement, RejectedNodes
from scorer.load_scale import UNKNOWN, percent

_NAMED = 5


def explanation_tables(explanation: Explanation) -> list[Table]:
    """Nodes, best first, with their peaks without -> with the pod; and, where more than one score counts, what each
    contributed.
    """
    totals = {} if explanation.judgement is None else explanation.judgement.totals
    title = f"{explanation.pod} ({explanation.service}) on {explanation.n_nodes} nodes, best first"
    columns = (
        ">rank",
        "node",
        *((">sum",) if totals else ()),
        ">score",
        ">expected peak, next 24 h\nwithout -> with it",
        ">expected peak, week\nwithout -> with it",
        "when (next 24 h), with it",
    )
    nodes = titled_table(escape(title), *columns, wrap_first=False)
    for node in explanation.nodes:
        after = node.peak_with
        notes = "; ".join([*([_when(after, explanation.now.date())] if after else []), *node.notes])
        total = [f"{totals[node.node]:.1f}" if node.node in totals else "–"] if totals else []
        nodes.add_row(
            "–" if node.rank is None else str(node.rank),
            escape(node.node),
            *total,
            f"{node.score:.1f}",
            _change(node.peak_before, after),
            _change(node.week_before, node.week_with),
            escape(notes),
        )
    tables = [nodes]
    if any(len(node.contributions) > 1 for node in explanation.nodes):
        scores = (f">{part.name} x {part.weight:g}" for part in explanation.nodes[0].contributions)
        title = "What each score contributes (score x weight / all weights)"
        parts = titled_table(title, "node", *scores, wrap_first=False)
        for node in explanation.nodes:
            parts.add_row(escape(node.node), *(f"{part.points:.1f} ({part.score:.0f})" for part in node.contributions))
        tables.append(parts)
    if explanation.judgement is not None and explanation.judgement.parts:
        tables.append(_sums_table(explanation.judgement, [node.node for node in explanation.nodes]))
    return tables


def _sums_table(judgement: JudgementSummary, nodes: Sequence[str]) -> Table:
    """A row for each score that counts, a column for each node that may be chosen."""
    shown = [name for name in nodes if name in judgement.totals]
    title = "What each score adds to the sum (its weight times 0 to 100)"
    table = titled_table(title, "score x weight", *(f">{escape(name)}" for name in shown), wrap_first=False)
    for part in judgement.parts:
        points = [f"{part.points[name]:.1f}" if name in part.points else "–" for name in shown]
        table.add_row(f"{part.name} x {part.weight:g}", *points)
    return table


def remarks(explanation: Explanation) -> list[str]:
    """What else one should know, a line each."""
    lines = []
    if explanation.margin is not None:
        behind = "points behind" if explanation.judgement is None else "less in the sum of all scores"
        lines.append(f"runner-up: {explanation.runner_up}, {explanation.margin:.2f} {behind}")
    age = _age(explanation.model_age_seconds)
    model = (
        f"model {explanation.model_version}, whose first day began {age} ago"
        if explanation.model_version
        else "no model"
    )
    measured = _age(explanation.metrics_age_seconds)
    lines.append(f"{model}; usage {'measured ' + measured + ' ago' if measured else 'not measured'}")
    lines.append(f"degradation level {int(explanation.level)} ({explanation.level.name.lower()})")
    lines += [f"  {reason}" for reason in explanation.reasons]
    if explanation.policy_because:
        lines.append(f"policy {explanation.policy} ({explanation.policy_because})")
    lines += [f"not applied: {what}" for what in explanation.not_applied]
    if not explanation.service_known:
        lines.append("the model does not know this service: predicted from its requests")
    if explanation.assumed_capacities:
        lines.append(f"{assumed_line(explanation.assumed_capacities)} (docs/understand/model.md)")
    units = {resource.name: resource.unit for resource in RESOURCES}
    used = ", ".join(f"{name} {amount(value, units[name])}" for name, value in explanation.virtual_request.items())
    lines.append(f"virtual request ({explanation.virtual_request_source}): {used}")
    return lines


def _change(before: Peak | None, after: Peak | None) -> str:
    """The peak without and with the pod: 67 -> 70 % cpu. The resource may be another with it."""
    if before is None or after is None or after.share is None:
        return UNKNOWN
    first = percent(before.share).removesuffix(" %")
    first += f" {before.resource}" if before.resource != after.resource else ""
    return f"{first} -> {percent(after.share)} {'of assumed ' if after.assumed else ''}{after.resource}"


def _when(peak: Peak, today: date) -> str:
    """When the peak comes, how much that is, and its upper bound."""
    bound = "" if peak.bound is None else f", upper bound (95 %) {percent(bound_share(peak))}"
    return f"{clock(peak.at, today)}: {amount(peak.expected, peak.unit)}{bound}"


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


def judgement_lines(judgement: Judgement, remark: str = "") -> list[str]:
    """Who places the pod, by which policy, what filters reject, and what becomes of it. remark: on the component."""
    lines = [f"placed by: {judgement.component}"]
    if remark:
        lines.append(f"  {remark}")
    if judgement.policy and not judgement.policy_because:
        lines.append(f"policy {judgement.policy}")
    if judgement.ahead:
        lines.append(f"{judgement.ahead} pods that wait before it are placed first")
    if judgement.held:
        lines.append(f"held: {judgement.held}")
    if judgement.evicts:
        named = ", ".join(judgement.evicts[:_NAMED]) + (", ..." if len(judgement.evicts) > _NAMED else "")
        lines.append(f"evicts {named} so that it fits on {judgement.makes_room_on}")
    n_passing = len(judgement.ranking) + len(judgement.passed_over)
    lines.append(f"{n_passing} of {judgement.n_nodes} nodes pass all filters")
    lines += [f"  {len(one.nodes)} rejected by {_words(one)}" for one in judgement.rejections]
    by = Counter(judgement.passed_over.values())
    lines += [f"  {n} passed over by {name}" for name, n in by.most_common()]
    return lines


def rejection_lines(judgement: Judgement) -> list[str]:
    """Every node that a filter rejects, a line for each filter and reason."""
    return [f"{one.filter}: {one.reason}: {', '.join(one.nodes)}" for one in judgement.rejections]


def _words(one: RejectedNodes) -> str:
    helps = "evicting pods may help" if one.preemptible else "evicting pods does not help"
    return f"{one.filter}: {one.reason} ({helps})"
