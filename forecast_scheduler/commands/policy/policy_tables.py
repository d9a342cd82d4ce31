"""What `policy check` found, as people read it and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich.table import Table

from forecast_scheduler.commands.live_placing import BestNode
from forecast_scheduler.commands.policy.policy_survey import PolicyMove, Survey
from forecast_scheduler.reports.table_format import plain, titled_table
from placement.policies.document import PolicyDocument, PolicySpec, RuleSpec
from placement.policies.policy import ChosenPolicy
from scorer.load_scale import percent

_FEW: Final = 5
"""Names that are shown of many."""


def document_table(document: PolicyDocument, name: str) -> Table:
    """What is in a document, when there is no cluster to hold it against."""
    chosen = f"default {document.default}" if document.default else "no default: the settings"
    title = plain(f"{name}: sound; {chosen}")
    table = titled_table(title, "policy", "unlike the settings", "chosen by", wrap_first=False)
    for policy, spec in document.policies.items():
        rules = [f"rule {n}: {_conditions(rule)}" for n, rule in _rules(document) if rule.policy == policy]
        rules += ["default"] if document.default == policy else []
        table.add_row(
            plain(policy),
            plain(", ".join(_differences(spec)) or "nothing"),
            plain("; ".join(["annotation", *rules])),
        )
    return table


def document_json(document: PolicyDocument) -> dict[str, Any]:
    """The same."""
    return {
        "default": document.default,
        "policies": {
            policy: {
                "description": spec.description,
                "sets": _differences(spec),
                "rules": [n for n, rule in _rules(document) if rule.policy == policy],
            }
            for policy, spec in document.policies.items()
        },
        "rules": len(document.rules or ()),
        "notes": notes(document),
    }


def notes(document: PolicyDocument) -> list[str]:
    """What the placing components make of a document in different ways, a sentence each."""
    weighing = [name for name, spec in document.policies.items() if spec.scores and spec.scores.plugin_weights]
    pooled = [name for name, spec in document.policies.items() if spec.pools]
    filtering = [name for name, spec in document.policies.items() if spec.filters is not None]
    return [
        f"{key} of {_few(names)}: {what}"
        for key, names, what in (
            ("plugin_weights", weighing, "these count in our own loops; kube-scheduler has weights of its own"),
            ("pools", pooled, "strict in our own loops; the extender gives points to the nodes it is asked about"),
            ("filters", filtering, "kube-scheduler's filters and those of our profiles run all the same"),
        )
        if names
    ]


def choices_table(survey: Survey) -> Table:
    """Pods by policy, and what chose it."""
    table = titled_table(f"Policies of {survey.pods} pods", "policy", ">pods", "chosen by", wrap_first=False)
    for choice in survey.choices:
        table.add_row(plain(choice.policy), str(choice.pods), plain(choice.because or "nothing else"))
    return table


def moves_table(moves: Sequence[PolicyMove]) -> Table:
    """Best nodes before and after, one row for each kind of pods."""
    title = "Best nodes of the pods that are touched, by the policies in place and by these"
    table = titled_table(
        title, "one of", ">pods", "policy", "best node", "expected peak with the pod", wrap_first=False
    )
    for move in moves:
        kind = move.kind
        table.add_row(
            plain(f"{kind.pod.namespace}/{kind.pod.name}"),
            str(kind.pods),
            plain(f"{kind.before.policy.name} -> {kind.after.policy.name}"),
            plain(f"{move.before.node or 'none'} -> {move.after.node or 'none'}" if move.is_move else "the same: ")
            + ("" if move.is_move else plain(move.after.node or "none")),
            f"{percent(move.before.peak_share)} -> {percent(move.after.peak_share)}",
            style="bold" if move.is_move else None,
        )
    return table


def survey_lines(survey: Survey, moves: Sequence[PolicyMove]) -> list[str]:
    """The sum of it, a line each."""
    lines = [
        f"annotation {one.name!r} names no policy: {one.pods} pods, for instance {one.pod}" for one in survey.unknown
    ]
    if not survey.touched_pods:
        return [*lines, "no pod is touched: none would be treated otherwise than by the policies in place"]
    moved = [move.kind.pods for move in moves if move.is_move and move.after.node is not None]
    stuck = [move.kind.pods for move in moves if move.after.node is None]
    lines.append(
        f"{survey.touched_pods} of {survey.pods} pods are touched, of {len(moves)} kinds that were looked at: "
        f"for {sum(moved)} ({len(moved)} kinds) another node would be best, "
        f"for {sum(stuck)} ({len(stuck)}) there is none"
    )
    lines += [
        f"no node would take {move.kind.pod.namespace}/{move.kind.pod.name} "
        f"({move.kind.pods} pods, policy {move.kind.after.policy.name}): {move.after.why_not}"
        for move in moves
        if move.after.node is None
    ]
    if survey.left_out:
        lines.append(f"{survey.left_out} kinds with {survey.left_out_pods} pods were not looked at: raise --top")
    return lines


def unread_lines(namespaces: Sequence[str]) -> list[str]:
    """Name the namespaces whose labels are unknown but asked for by rules: what is said of their pods may be wrong."""
    if not namespaces:
        return []
    found = f"labels of {len(namespaces)} namespaces are not known, no rule with a namespace_selector holds there"
    way_out = "with --cluster export them, too: kubectl get nodes,pods,replicasets,jobs,namespaces -A -o json"
    return [f"{found}: {_few(namespaces)}; {way_out}"]


def unread_json(namespaces: Sequence[str]) -> dict[str, Any]:
    """The same."""
    return {"count": len(namespaces), "first": list(namespaces[:_FEW])}


def check_json(survey: Survey, moves: Sequence[PolicyMove], unread: Sequence[str] = ()) -> dict[str, Any]:
    """The same figures. unread: see unread_lines."""
    return {
        "pods": survey.pods,
        "namespaces_not_known": unread_json(unread),
        "choices": [{"policy": one.policy, "because": one.because, "pods": one.pods} for one in survey.choices],
        "unknown_pods": survey.unknown_pods,
        "unknown": [{"name": one.name, "pods": one.pods, "pod": one.pod} for one in survey.unknown],
        "touched_pods": survey.touched_pods,
        "left_out": survey.left_out,
        "left_out_pods": survey.left_out_pods,
        "touched": [
            {
                "pod": f"{move.kind.pod.namespace}/{move.kind.pod.name}",
                "service": move.kind.service,
                "pods": move.kind.pods,
                "runs_on": move.runs_on or None,
                "moves": move.is_move,
                "before": _side(move.kind.before, move.before),
                "after": _side(move.kind.after, move.after),
            }
            for move in moves
        ],
    }


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:_FEW]) + (", ..." if len(names) > _FEW else "")


def _rules(document: PolicyDocument) -> Iterable[tuple[int, RuleSpec]]:
    return enumerate(document.rules or (), start=1)


def _conditions(rule: RuleSpec) -> str:
    given = rule.model_dump(exclude={"policy", "description"}, exclude_none=True)
    namespaces = given.pop("namespaces", None)
    words = [f"{'namespaces' if len(namespaces) > 1 else 'namespace'} {', '.join(namespaces)}"] if namespaces else []
    return " and ".join([*words, *(name.replace("_", " ") for name in given)])


def _differences(spec: PolicySpec) -> list[str]:
    """Keys that the policy sets, from the top: filters, scores.weights."""
    given = spec.model_dump(exclude={"description"}, exclude_none=True)
    nested = {"scores", "cards"}
    return [
        name
        for key, value in given.items()
        for name in ([f"{key}.{inner}" for inner in value] if key in nested else [key])
    ]


def _side(chosen: ChosenPolicy, best: BestNode) -> dict[str, Any]:
    return {
        "policy": chosen.policy.name,
        "because": chosen.because,
        "node": best.node,
        "peak_share": best.peak_share,
        "feasible_nodes": best.feasible,
        "why_not": best.why_not or None,
    }
