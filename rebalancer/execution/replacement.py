"""Which pod took the place of one that was evicted?

A replacement has the same owner, was created no earlier than the newest pod that the record knows, and is not among the
pods that the record knows. Creation times come from the API server, whose clock is never compared with ours. Two API
servers of one cluster may disagree by seconds: pods created that shortly before the newest are recorded by UID.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from rebalancer.execution.observation import PodSeen
from rebalancer.execution.wire import MOST_KNOWN, MoveStatus

_SKEW: Final = timedelta(seconds=10)
_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class KnownPods:
    """Pods of an owner before the eviction, as MoveStatus keeps them."""

    newest: datetime
    uids: tuple[str, ...]


def known_pods(pods: Sequence[PodSeen]) -> KnownPods | None:
    """Return what tells replacements from these pods; None = too many of them are new, as in a rollout."""
    newest = max((pod.created for pod in pods), default=_BEGINNING)
    uids = tuple(sorted(pod.uid for pod in pods if pod.created >= newest - _SKEW))
    return None if len(uids) > MOST_KNOWN else KnownPods(newest, uids)


def replacements(record: MoveStatus, siblings: Sequence[PodSeen]) -> list[PodSeen]:
    """Return pods that may have taken the place of the pod, those of the record's replacement first."""
    earliest = (record.newest or _BEGINNING) - _SKEW
    known = {record.uid, *record.known}
    found = [
        pod
        for pod in siblings
        if pod.uid not in known and pod.created >= earliest and not pod.is_terminating and not pod.is_finished
    ]
    return sorted(found, key=lambda pod: (pod.uid != record.replacement_uid, pod.created, pod.uid))


def chosen_replacement(record: MoveStatus, siblings: Sequence[PodSeen], target: str) -> PodSeen | None:
    """Return the pod that counts as the replacement; None = there is none yet.

    The owner may create others at the same time. The pod that was recorded stays the replacement while it is there;
    otherwise one on the target comes before one without a node, and that before one elsewhere.
    """
    found = replacements(record, siblings)
    if not found:
        return None
    if record.replacement_uid and found[0].uid == record.replacement_uid:
        return found[0]
    return min(found, key=lambda pod: (pod.node != target, bool(pod.node), pod.created, pod.uid))
