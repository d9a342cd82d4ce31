"""A rendering as people and programs read it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from admission.templates.skip_reasons import SkipReason
from forecast_scheduler.commands.render.rendering import APPLIED, APPLIED_IN_PART, NOT_MATCHED, Rendering
from forecast_scheduler.commands.render.template_sources import Templates
from placement.policies.policy import Chosen

EXCLUDED_NAMESPACES: Final = ("kube-system", "kube-node-lease", "forecast-scheduler")
"""By deploy/base/webhook/configuration.yaml."""

_MOST_NOT_MATCHED = 20


def fate_lines(rendering: Rendering, source: str) -> list[str]:
    """What became of each binding, one line each; of those that do not mean the pod the first ones."""
    fates = rendering.fates
    if not fates:
        return [f"{rendering.pod.what}: there are no bindings in {source}"]
    n_applied = sum(fate.outcome in (APPLIED, APPLIED_IN_PART) for fate in fates)
    lines = [f"{rendering.pod.what}: {n_applied} of {len(fates)} bindings in {source} apply"]
    apart = [fate for fate in fates if fate.outcome == NOT_MATCHED]
    shown = [fate for fate in fates if fate.outcome != NOT_MATCHED] + apart[:_MOST_NOT_MATCHED]
    for fate in shown:
        why = f": {fate.message}" if fate.message else ""
        lines.append(f"  {fate.binding} ({fate.template}) {fate.outcome}{why}")
    if len(apart) > _MOST_NOT_MATCHED:
        lines.append(f"  and {len(apart) - _MOST_NOT_MATCHED} more that are not matched")
    return lines


def trial_lines(rendering: Rendering) -> list[str]:
    """What one should know before trusting it."""
    lines = list(rendering.shaped.remarks)
    if rendering.pod.is_stored:
        lines.append(
            "the pod was created already and has what templates gave it then; this is what would be made of it if it, "
            "as it is, came once more"
        )
    if rendering.info.owner.kind == "DaemonSet":
        lines.append("pods of a DaemonSet do not reach the webhook as it is shipped (deploy/base/webhook)")
    if rendering.pod.namespace in EXCLUDED_NAMESPACES:
        lines.append(
            f"pods of namespace {rendering.pod.namespace} do not reach the webhook as it is shipped "
            "(deploy/base/webhook)"
        )
    if "matchLabelKeys" in str(rendering.shaped.affinity):
        lines.append("matchLabelKeys: the API server adds the pod's own values to labelSelector when it stores the pod")
    return lines


def figures_of(rendering: Rendering, read: Templates, chosen: Chosen | None) -> dict[str, Any]:
    """The same for programs."""
    told = [one for one in rendering.shaped.skipped if one.reason in _WARNED or one.lost_keys]
    return {
        "pod": rendering.pod.what,
        "templates": read.source,
        "changed": rendering.is_changed,
        "bindings": [asdict(fate) for fate in rendering.fates],
        "warnings": [*rendering.shaped.remarks, *(f"{one.binding}: {one.message}" for one in told), *read.warnings],
        "affinity": (rendering.after.get("spec") or {}).get("affinity"),
        "annotations": dict(rendering.shaped.annotations),
        "policy": None if chosen is None else {"name": chosen.policy.name, "because": chosen.because},
    }


_WARNED = frozenset(
    {
        SkipReason.ARGUMENTS,
        SkipReason.BROKEN,
        SkipReason.CONTRADICTION,
        SkipReason.TOO_LARGE,
        SkipReason.UNREADABLE,
    }
)
