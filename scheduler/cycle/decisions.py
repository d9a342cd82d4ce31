"""What a scheduling cycle decided about the pods of one unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from scheduler.queue.queued import QueuedPod


@dataclass(frozen=True, slots=True)
class Rejected:
    """Pods without a node, for the same reason.

    by            : plugins that rejected nodes; none = an error, which time may mend
    retry_seconds : time after which another try may succeed without an event; 0 = unknown
    is_passed_on  : another replica tries them next, or lends nodes for them: they do not fail yet, and nothing is
                    reported
    """

    pods: Sequence[QueuedPod]
    by: frozenset[str]
    message: str
    retry_seconds: float = 0.0
    is_passed_on: bool = False


@dataclass(slots=True)
class Decisions:
    """
    placed     : pods and the names of their nodes, assumed and reserved
    unfinished : pods that were not looked at: the cycle has taken long enough
    gone       : UIDs of pods that need no node any more
    looked_for_victims : for how many pods PostFilter plugins were asked
    """

    placed: list[tuple[QueuedPod, str]] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    unfinished: list[QueuedPod] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    looked_for_victims: int = 0
