"""What was read of the cluster about one move, which pod took the place of the evicted one, and what became of the
last request. Values only, no I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final

from rebalancer.execution.plan_wire import MOST_KNOWN, MoveStatus

_SKEW: Final = timedelta(seconds=10)
_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PodSeen:
    """A pod as the API server has it now.

    owner      : top owner as its own labels name it, namespace/Kind/name
    owner_kind : kind of its controller; '' = none
    selector   : of the labels that it shares with the other pods of its owner
    node       : '' = not bound
    is_gated   : a scheduling gate holds it
    nominated  : node in its status; '' = none
    trouble    : why it has no node, as its scheduler says; '' = nothing was said
    """

    name: str
    uid: str
    created: datetime
    owner: str = ""
    owner_kind: str = ""
    owner_name: str = ""
    selector: str = ""
    node: str = ""
    is_ready: bool = False
    is_terminating: bool = False
    is_finished: bool = False
    is_gated: bool = False
    nominated: str = ""
    trouble: str = ""


class Reply(Enum):
    """What became of the last request to evict a pod."""

    NONE = "none was sent by this executor"
    ACCEPTED = "accepted"
    ASKED = "an EvictionRequest asks for it"
    BUDGET = "a disruption budget said no"
    FAILED = "nothing was done"
    UNKNOWN = "it may have been done"


@dataclass(frozen=True, slots=True)
class Attempt:
    """The last eviction, dry run of one, or change of a Deployment for a move. at: unix seconds.

    is_conflict : another client wrote the Deployment in the same moment
    """

    reply: Reply = Reply.NONE
    at: float = 0.0
    why: str = ""
    is_conflict: bool = False


@dataclass(frozen=True, slots=True)
class DeploymentSeen:
    """The Deployment of a pod that moves by a surge.

    allows_surge : its owner set the annotation
    scaled_by    : name of a HorizontalPodAutoscaler that targets it; '' = none
    surged_for   : UID of the pod for which we scaled it up; '' = it is not scaled up by us
    recorded     : replicas before we scaled it up, as the Deployment itself says; None = it does not
    asked_by     : who else asks for this number of replicas, by server-side apply; '' = nobody
    """

    name: str
    version: str
    replicas: int
    allows_surge: bool = False
    scaled_by: str = ""
    surged_for: str = ""
    recorded: int | None = None
    asked_by: str = ""

    def has_ours(self, before: int) -> bool:
        """Return whether one of its replicas is the one that we added to so many, and nobody else wants it by now."""
        return self._is_scaled_up(before) and not (self.scaled_by or self.asked_by)

    def is_taken_over(self, before: int) -> bool:
        """Return whether others want the replica that we added: it stays, and with it the mark.

        deploy/base/rebalancer/policy.yaml lets the mark go with the replica only, or once the replicas are others'.
        """
        return self._is_scaled_up(before) and bool(self.scaled_by or self.asked_by)

    def _is_scaled_up(self, before: int) -> bool:
        return self.replicas == before + 1 and self.recorded == before


@dataclass(frozen=True, slots=True)
class Observation:
    """
    pod        : the pod of the move's UID; None = it is gone
    siblings   : other pods of its owner; read once the move begins
    target     : why the target takes no pod; '' = it does
    hindrance  : why the move must not begin, by the rules of the caller; '' = it may
    is_closed  : the time in which the pod may be made to go is over
    wanted     : pods that the controller of the pod wants; None = not read, or not known
    deployment : of a move by surge; None = not read, or gone
    attempt    : the last request of this executor for the move
    nominated_at : unix seconds of its last nomination of the target
    sure_from  : unix seconds from which no request of an earlier executor can be under way any more
    """

    pod: PodSeen | None = None
    siblings: tuple[PodSeen, ...] = ()
    target: str = ""
    hindrance: str = ""
    is_closed: bool = False
    wanted: int | None = None
    deployment: DeploymentSeen | None = None
    attempt: Attempt = Attempt()
    nominated_at: float = float("-inf")
    sure_from: float = 0.0


# Which pod took the place of one that was evicted?
#
# A replacement has the same owner, was created no earlier than the newest pod that the record knows, and is not among
# the pods that the record knows. Creation times come from the API server, whose clock is never compared with ours. Two
# API servers of one cluster may disagree by seconds: pods created that shortly before the newest are recorded by UID.


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
