"""Relieves nodes that have too much on them: evicts what a plan names, pod by pod, and yields to disruption budgets.

    strained --victims are evicted--------> waits until they are gone --> well
        +--a budget refuses--> the next newest, in the same step
        +--no victim is left--> reported, tried again after 5 s, 10 s, ... 60 s
        +--the API server has no time, or no answer--> tried again after the same pauses

An eviction without an answer is asked again for the same pod before anything else is decided for the node: it may
have been carried out, and another victim would be one too many.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

from kube.client.eviction import Evict, Evicted
from kube.objects.objects import PodInfo
from kube.write_pacing import TokenBucket
from scheduler.overcommit.repair_victims import RepairPlan

logger = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 60.0
_TOLD_TO_GO_SECONDS: Final = 30.0
"""An evicted pod shows as terminating long before. If not, the watch lags, or another pod of that name is there: it is
looked at anew.
"""

_MOST_REFUSALS: Final = 20
"""At one node in one step."""

_RATE, _BURST = 5.0, 50.0
"""Evictions a second. A label that was moved by mistake may strain thousands of nodes at once."""


class Strained(Protocol):
    """A node that has too much on it, and the pods that sit there."""

    @property
    def node(self) -> str:
        """Its name."""

    @property
    def pods(self) -> tuple[PodInfo, ...]:
        """All that are bound there."""


_S = TypeVar("_S", bound=Strained)

Plan = Callable[[_S, Collection[str], Collection[str]], RepairPlan]
"""What to evict now, of a node; UIDs of pods that were evicted, and of those that may not be evicted now."""


@dataclass(frozen=True, slots=True)
class RepairReport:
    """For events. pod: that was evicted, None = a node could not be relieved, and why."""

    node: str
    pod: PodInfo | None = None
    why: str = ""


@dataclass(slots=True)
class _Node:
    """asked: evicted pods, with the time; unsure: those of them whose eviction had no answer; pause: before the next
    try after one in vain, 0 = there was none.
    """

    asked: dict[str, float] = field(default_factory=dict)
    unsure: dict[str, PodInfo] = field(default_factory=dict)
    not_before: float = 0.0
    pause: float = 0.0
    is_unrepaired: bool = False


class NodeRelief(Generic[_S]):
    """`step` is called again and again by one thread."""

    def __init__(
        self,
        look: Callable[[], Iterable[_S]],
        plan: Plan[_S],
        evict: Evict,
        *,
        what: str,
        may_write: Callable[[], bool] = lambda: True,
        tell: Callable[[RepairReport], None] = lambda report: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        look      : at the nodes that are strained now
        what      : such a node is, for the log: "an overcommitted node"
        may_write : whether this replica leads
        tell      : called with pods that were evicted, and nodes that could not be relieved (once each); quick
        """
        self._look, self._plan, self._evict, self._what = look, plan, evict, what
        self._may_write, self._tell, self._clock = may_write, tell, clock
        self._nodes: dict[str, _Node] = {}
        self._bucket = TokenBucket(_RATE, _BURST)
        self._evictions: Counter[Evicted] = Counter()

    def step(self) -> None:
        """Relieve who is strained now."""
        standing = {one.node: one for one in self._look()}
        for name in self._nodes.keys() - standing.keys():
            del self._nodes[name]
        if not self._may_write():
            return
        for one in standing.values():
            node = self._nodes.setdefault(one.node, _Node())
            if not self._relieve(one, node):
                return

    @property
    def unrepaired(self) -> int:
        """Strained nodes that cannot be relieved at the moment."""
        return sum(node.is_unrepaired for node in list(self._nodes.values()))

    @property
    def evictions(self) -> Mapping[Evicted, int]:
        """Asked for since the start, by what became of them."""
        return dict(self._evictions)

    # Inside

    def _relieve(self, one: _S, node: _Node) -> bool:
        """False = nothing more can be evicted in this step, wherever."""
        now = self._clock()
        self._forget(one, node, now)
        if 0 < node.not_before - now <= _LONGEST_PAUSE:
            return True
        for pod in list(node.unsure.values()):
            outcome = self._send(pod, one, node, now)
            if outcome is None:
                return False
            if outcome in (Evicted.UNKNOWN, Evicted.NOT_NOW):
                return True
        refusals: dict[str, str] = {}
        while len(refusals) < _MOST_REFUSALS:
            plan = self._plan(one, node.asked, refusals)
            if not plan.victims:
                if plan.unrepaired:
                    self._give_up(one, node, _why(plan.unrepaired, refusals), now)
                else:
                    node.is_unrepaired = False  # all will be well once those that go are gone
                return True
            for pod in plan.victims:
                outcome = self._send(pod, one, node, now, refusals)
                if outcome is None:
                    return False
                if outcome in (Evicted.UNKNOWN, Evicted.NOT_NOW):
                    return True
                if outcome is Evicted.REFUSED:
                    break  # others may be enough in its place
        self._give_up(one, node, _why({}, refusals), now)
        return True

    def _send(
        self, pod: PodInfo, one: _S, node: _Node, now: float, refusals: dict[str, str] | None = None
    ) -> Evicted | None:
        """Ask for one eviction, and note what became of it; None = none may be asked for now."""
        if not self._may_write() or not self._bucket.take(now):
            return None
        eviction = self._evict(pod)
        self._evictions[eviction.outcome] += 1
        fields = {"pod": f"{pod.namespace}/{pod.name}", "node": one.node, "outcome": eviction.outcome.value}
        logger.info("eviction for %s", self._what, extra=fields | {"why": eviction.why})
        match eviction.outcome:
            case Evicted.GOING:
                node.unsure.pop(pod.uid, None)
                node.asked[pod.uid] = now
                node.pause, node.is_unrepaired = 0.0, False
                self._tell(RepairReport(one.node, pod))
            case Evicted.REFUSED:
                node.unsure.pop(pod.uid, None)
                node.asked.pop(pod.uid, None)
                if refusals is not None:
                    refusals[pod.uid] = eviction.why
            case Evicted.UNKNOWN:
                node.unsure[pod.uid] = pod
                node.asked[pod.uid] = now
                self._pause(node, now)
            case Evicted.NOT_NOW:
                self._give_up(one, node, f"the API server does not evict: {eviction.why}", now)
        return eviction.outcome

    def _give_up(self, one: _S, node: _Node, why: str, now: float) -> None:
        """Give up on the node for now. Reported once, until a pod could be evicted again."""
        if not node.is_unrepaired:
            node.is_unrepaired = True
            self._tell(RepairReport(one.node, why=why))
            logger.warning("%s cannot be relieved", self._what, extra={"node": one.node, "why": why})
        self._pause(node, now)

    def _pause(self, node: _Node, now: float) -> None:
        node.pause = min(_LONGEST_PAUSE, 2 * node.pause or _FIRST_PAUSE)
        node.not_before = now + node.pause

    def _forget(self, one: _S, node: _Node, now: float) -> None:
        """What was asked of pods that are gone, show that they go, or should have long since."""
        here = {pod.uid: pod for pod in one.pods}
        for uid, at in list(node.asked.items()):
            pod = here.get(uid)
            if pod is None or pod.terminating:
                del node.asked[uid]
                node.unsure.pop(uid, None)
            elif uid not in node.unsure and not 0 <= now - at < _TOLD_TO_GO_SECONDS:
                del node.asked[uid]


def _why(unrepaired: Mapping[str, int], refusals: Mapping[str, str]) -> str:
    """Why a node stays as it is. refusals: by UID, why the pod may not be evicted."""
    why = "our pods there that may be evicted do not give back enough"
    if unrepaired:
        why += ": short of " + ", ".join(f"{units} of {kind}" for kind, units in sorted(unrepaired.items()))
    if refusals:
        why += f"; {len(refusals)} may not be evicted now: {next(iter(refusals.values()))}"
    return why
