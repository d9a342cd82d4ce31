"""Which of the bindings that mean a pod are applied to it, which are not, and why, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final

import msgspec

from admission.templates.affinity import MOST_AFFINITY_BYTES, Affinity, affinity_json
from admission.templates.merging import Merged, MergeOutcome, lost_keys, merged
from admission.templates.rendering import Rendered
from admission.templates.shaping_annotations import Applied
from admission.templates.template_set import Compiled

_MOST_KEYS: Final = 4

MOST_BINDINGS: Final = 32
"""Applied to one pod: what is written on a pod must stay small."""

MOST_CANDIDATES: Final = 128
"""Looked at for one pod: trying one in vain takes up to half a millisecond, for which other pods wait."""

MOST_TRIES: Final = 512
"""Merges after which no further round begins. Only bindings written to exhaust it need as many."""

MOST_COMPARED: Final = 8
"""Bindings of which it is found out what the pod does not say itself."""


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


@dataclass(frozen=True, slots=True)
class BindingDecisions:
    """What the bindings come to for one pod.

    applied, skipped : in order of priority
    is_stable        : another round would decide the same
    """

    affinity: Affinity
    applied: tuple[Applied, ...]
    skipped: tuple[Skipped, ...]
    is_stable: bool = True


@dataclass(slots=True)
class _Known:
    """What one round leaves to the next.

    hopeless : bindings that contradict: what a pod demands only ever grows
    n_tried  : merges so far; n_compared: how often it was asked what is lost
    """

    hopeless: dict[str, Skipped] = field(default_factory=dict)
    n_tried: int = 0
    n_compared: int = 0


def decide(
    bindings: Sequence[Compiled],
    written: object,
    before: Affinity,
    recorded: Mapping[str, Applied],
) -> BindingDecisions:
    """Go through the bindings by priority, until another round would decide the same.

    written, before : spec.affinity of the pod as it is, and as it was read
    recorded        : what the pod's annotation says of bindings applied to it

    One round is enough but where a binding rules out terms of the pod: labels that only those spoke of are free then,
    and what was too large may fit. That must not wait for the pod to be sent a second time.
    """
    partly: dict[str, Skipped] = {}
    affinity, known = before, _Known()
    while True:
        decisions = _one_round(bindings, written, before, affinity, recorded, known)
        partly |= {one.binding: one for one in decisions.skipped if one.reason is SkipReason.CONFLICT}
        if decisions.is_stable or decisions.affinity is affinity or known.n_tried > MOST_TRIES:
            break
        affinity = decisions.affinity
        recorded = {one.binding: one for one in decisions.applied}
    applied = {one.binding for one in decisions.applied}
    others = [one for one in decisions.skipped if one.reason is not SkipReason.CONFLICT]
    skipped = (*(one for name, one in partly.items() if name in applied), *others)
    return replace(decisions, skipped=skipped)


def _one_round(
    bindings: Sequence[Compiled],
    written: object,
    before: Affinity,
    affinity: Affinity,
    recorded: Mapping[str, Applied],
    known: _Known,
) -> BindingDecisions:
    applied: list[Applied] = []
    skipped: list[Skipped] = []
    constrained: frozenset[str] = frozenset()
    may_fit_later = False
    n_candidates = 0
    at_most = _bytes_of(affinity_json(written, before, affinity))

    for compiled in bindings:
        binding, name, earlier = compiled.binding, compiled.binding.name, recorded.get(compiled.binding.name)
        if binding.suspended and (earlier is None or compiled.rendered is None):
            skipped.append(Skipped(name, SkipReason.SUSPENDED, "the binding is suspended"))
            continue
        if compiled.rendered is None:
            problem = compiled.problem
            message = f"{problem.reason}: {problem.message}" if problem is not None else "it is not compiled"
            skipped.append(Skipped(name, SkipReason.BROKEN, message))
            continue
        # Counted by what does not depend on the pod, so that the same ones are looked at every time.
        n_candidates += not binding.suspended
        if len(applied) >= MOST_BINDINGS or n_candidates > MOST_CANDIDATES:
            many = MOST_BINDINGS if n_candidates <= MOST_CANDIDATES else MOST_CANDIDATES
            message = f"{many} bindings with a higher priority mean the pod"
            skipped.append(Skipped(name, SkipReason.TOO_LARGE, message))
            continue
        if name in known.hopeless:
            skipped.append(known.hopeless[name])
            continue
        known.n_tried += 1
        result = merged(affinity, compiled.rendered, binding.on_conflict)
        if earlier is not None and result.outcome in (MergeOutcome.UNCHANGED, MergeOutcome.KEPT_POD):
            applied.append(earlier)  # what it asks for is there: from itself, as the record says
            continue
        if binding.suspended:
            skipped.append(Skipped(name, SkipReason.SUSPENDED, "the binding is suspended"))
            continue
        if result.outcome is not MergeOutcome.ADDED:
            one = not_merged(name, result, _lost(affinity, compiled.rendered, result, known))
            if result.outcome is MergeOutcome.CONTRADICTION:
                known.hopeless[name] = one
            may_fit_later |= result.outcome is MergeOutcome.TOO_LARGE
            skipped.append(one)
            continue
        # Counting takes longer than all else, and is needed only where it could come out as too much.
        at_most = (at_most + compiled.rendered.json_bytes) * _repeats(affinity, compiled.rendered)
        if at_most > MOST_AFFINITY_BYTES:
            at_most = _bytes_of(affinity_json(written, before, result.affinity))
        if at_most > MOST_AFFINITY_BYTES:
            at_most = MOST_AFFINITY_BYTES
            may_fit_later = True
            message = f"the affinity would have more than {MOST_AFFINITY_BYTES} bytes"
            skipped.append(Skipped(name, SkipReason.TOO_LARGE, message))
            continue
        if result.kept_keys and earlier is None:
            lost = _lost(affinity, compiled.rendered, result, known)
            skipped.append(applied_in_part(name, result, lost))
        if result.affinity.required is not affinity.required:
            constrained |= affinity.constrained_keys()
        affinity = result.affinity
        applied.append(_record(compiled))
    is_stable = constrained <= affinity.constrained_keys() and not may_fit_later
    return BindingDecisions(affinity, tuple(applied), tuple(skipped), is_stable)


def _lost(affinity: Affinity, rendered: Rendered, result: Merged, known: _Known) -> tuple[str, ...]:
    """Returns () also if it was asked often enough: no client shows more warnings than that."""
    if not result.kept_keys or known.n_compared >= MOST_COMPARED:
        return ()
    known.n_compared += 1
    return lost_keys(affinity, rendered.required)


def _repeats(affinity: Affinity, rendered: Rendered) -> int:
    """How often a term can be repeated at most where every term is put together with every other."""
    return max(1, len(affinity.required or ()), len(rendered.required))


def _record(compiled: Compiled) -> Applied:
    binding, template = compiled.binding, compiled.template
    return Applied(
        binding=binding.name,
        generation=binding.generation,
        template=str(binding.template),
        version=template.generation if template is not None else 0,
        arguments=compiled.given,
    )


def _bytes_of(affinity: Mapping[str, Any]) -> int:
    return len(msgspec.json.encode(affinity))
