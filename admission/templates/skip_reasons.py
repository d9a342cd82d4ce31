"""Why was a binding that means a pod not applied to it? Reasons, and the sentences that say them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from admission.templates.merging import Merged, MergeOutcome

_MOST_KEYS: Final = 4


class SkipReason(Enum):
    """Why a binding that means a pod was not applied to it, or not wholly. Lower-case, as metrics and pages have it."""

    SUSPENDED = "suspended"
    BROKEN = "broken"
    """The template is missing, or does not take these arguments."""
    OPTED_OUT = "opted_out"
    NODE_NAMED = "node_named"
    """spec.nodeName is set: it is placed already, and the kubelet turns away what its node does not fit."""
    ARGUMENTS = "arguments"
    """What the pod's annotation gives it is refused: its own arguments and the defaults count."""
    CONTROL = "control"
    CONFLICT = "conflict"
    """Applied, but for requirements on labels that the pod already constrains."""
    KEPT_POD = "kept_pod"
    """The pod already constrains all that the template asks for."""
    UNCHANGED = "unchanged"
    """The pod says all of it already, or the arguments leave nothing to say."""
    CONTRADICTION = "contradiction"
    TOO_LARGE = "too_large"
    UNREADABLE = "unreadable"
    """The pod's own affinity is none; the API server will refuse it."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A binding that means the pod and was not applied, or (CONFLICT, ARGUMENTS) not as it was meant.

    message   : one sentence
    lost_keys : of CONFLICT and KEPT_POD: labels on which the pod does not itself say what was left out
    """

    binding: str
    reason: SkipReason
    message: str
    lost_keys: tuple[str, ...] = ()


def not_merged(binding: str, merged: Merged, lost_keys: tuple[str, ...] = ()) -> Skipped:
    """Of what came out as anything but ADDED."""
    reason, message = _OUTCOMES[merged.outcome]
    if merged.clashing_keys:
        message += f": they clash on {_listed(merged.clashing_keys)}"
    return Skipped(binding, reason, message + _left_out(merged.kept_keys), lost_keys)


def applied_in_part(binding: str, merged: Merged, lost_keys: tuple[str, ...]) -> Skipped:
    """Of what was added less what the pod says something else of."""
    return Skipped(binding, SkipReason.CONFLICT, "applied in part" + _left_out(merged.kept_keys), lost_keys)


def on_trial_without_it(binding: str, percent: int | None) -> Skipped:
    """Of a pod in the control group."""
    return Skipped(binding, SkipReason.CONTROL, f"on trial with {percent} % of the pods, not with this one")


_OUTCOMES: Final = {
    MergeOutcome.UNCHANGED: (SkipReason.UNCHANGED, "nothing to add: the pod says all of it already"),
    MergeOutcome.KEPT_POD: (SkipReason.KEPT_POD, "the pod already constrains all that it asks for"),
    MergeOutcome.CONTRADICTION: (SkipReason.CONTRADICTION, "no node could meet its terms and those the pod has"),
    MergeOutcome.TOO_LARGE: (SkipReason.TOO_LARGE, "the affinity would have too many terms"),
}


def _left_out(keys: Sequence[str]) -> str:
    return f"; left out on {_listed(keys)}" if keys else ""


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(keys[:_MOST_KEYS]) + (", ..." if len(keys) > _MOST_KEYS else "")
