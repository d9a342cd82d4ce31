"""Does kube-scheduler still follow nominations? Judged by what becomes of ours; says how each pod is advised.

Advice rests on KEP-1923 (PreferNominatedNode, since Kubernetes 1.22): kube-scheduler tries the node in
status.nominatedNodeName before all others. KEP-5278, as narrowed in 1.35, means the field for kube-scheduler alone, and
keeps no other client from writing it. So it may end with any version, without a word. Preferred node affinity is the
supported road: less exact, and it takes over.

    UNKNOWN, FOLLOWED --a canary or MISSES pods in a row went elsewhere--> DOUBTED --CANARIES in a row--> IGNORED
          ^                                                                  |                              |
          +--------------- a canary went where it was nominated -------------+------------------------------+

A canary is a pod that is to be advised anyway: it is nominated to its second-best node and prefers the best one. It
ends on the second-best node if nominations are followed, and otherwise on the best: chance can hardly imitate that,
and in both cases the pod has a good node. One is due when this process starts to advise, when the API server has
another version, every hour, and in doubt; while nominations are ignored after 1, 2, 4, ... minutes, every hour at last.

A pod on another node counts only if all filters that we know let it onto the nominated one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from typing import Final

from placement.decisions.advice import Advice

logger = logging.getLogger(__name__)

EVERY_SECONDS: Final = 3600.0
CANARIES: Final = 3
"""In a row, of which the API server refuses the nomination or kube-scheduler passes the node over."""
MISSES: Final = 5
"""Pods in a row; a filter that is not known here, of a plugin for instance, keeps away single kinds of pods."""
NEAR_POINTS: Final = 200
"""Between the best and the second-best node of a canary: one percent of a node's capacity, with the default weights."""
PATIENCE_SECONDS: Final = 10.0
"""So long after the first pod that is no good canary any pod with two nodes is one."""
RETRY_SECONDS: Final = 60.0

_OPEN_SECONDS: Final = 60.0
"""A canary that is not bound by then waits for something else, or is gone."""
_MOST_OPEN: Final = 10_000


class Nominations(Enum):
    """What is known about them. DOUBTED: pods are nominated and prefer the same node."""

    UNKNOWN = "unknown"
    FOLLOWED = "followed"
    DOUBTED = "doubted"
    IGNORED = "ignored"


class Way(Enum):
    """How a pod is advised."""

    NOMINATE = "nominate"
    BOTH = "both"
    PREFER = "prefer"
    CANARY = "canary"

    @property
    def nominates(self) -> bool:
        """Return whether its status names a node."""
        return self is not Way.PREFER

    @property
    def prefers(self) -> bool:
        """Return whether it gets preferred node affinity together with the removal of our gate."""
        return self is not Way.NOMINATE


class CanaryOutcome(StrEnum):
    """What became of a canary. UNCLEAR: a filter kept it away, or it was not bound within a minute."""

    FOLLOWED = "followed"
    ELSEWHERE = "elsewhere"
    REFUSED = "refused"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class _Open:
    """A pod that was nominated to this node and is not bound yet. at: seconds of the clock."""

    node: str
    namespace: str
    is_canary: bool
    at: float


class Following:
    """For any thread.

    version : of the API server; another one makes a canary due
    clock   : seconds, monotonic
    """

    def __init__(self, version: Callable[[], object], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._version, self._clock = version, clock
        self._lock = threading.Lock()
        self._known_version: object = None
        self._state = Nominations.UNKNOWN
        self._due = clock()
        self._passed_over: float | None = None  # when a canary was due and a pod with two nodes was no good one
        self._retry_seconds = RETRY_SECONDS
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._canaries: dict[str, float] = {}  # by UID, when they were chosen
        self._missed: list[str] = []  # namespaces of canaries that were not followed, in a row
        self._missed_pods = 0
        self.canaries: Final[Counter[CanaryOutcome]] = Counter()

    @property
    def state(self) -> Nominations:
        """Return what is known."""
        return self._state

    def way(self, uid: str, advice: Advice | None) -> Way:
        """Return how a pod is to be advised. A canary is to be followed by `nominated`, `refused` or `given_up`."""
        now = self._clock()
        with self._lock:
            self._look_at_version(now)
            self._forget_old(now)
            if advice is not None and self._is_canary(advice, now):
                self._canaries[uid] = now
                return Way.CANARY
            return {Nominations.DOUBTED: Way.BOTH, Nominations.IGNORED: Way.PREFER}.get(self._state, Way.NOMINATE)

    def nominated(self, uid: str, namespace: str, node: str, way: Way) -> None:
        """The nomination of a pod stands; its gate is removed next."""
        if way is Way.BOTH:
            return  # where it ends says nothing
        with self._lock:
            self._open[uid] = _Open(node, namespace, way is Way.CANARY, self._clock())
            if len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)

    def refused(self, uid: str, namespace: str) -> None:
        """The API server refused a nomination, or dropped it."""
        with self._lock:
            self._canaries.pop(uid, None)
            self._missed_one(namespace, CanaryOutcome.REFUSED)

    def given_up(self, uid: str) -> None:
        """The pod was not nominated, for reasons that say nothing about kube-scheduler; for other pods, nothing."""
        with self._lock:
            self._canaries.pop(uid, None)

    def bound(self, uid: str, node: str, is_kept_away: Callable[[str], bool]) -> None:
        """The pod is on a node. is_kept_away: whether a filter that is known keeps it from a node."""
        with self._lock:
            nominated = self._open.pop(uid, None)
            self._canaries.pop(uid, None)
        if nominated is None:
            return
        is_followed = nominated.node == node
        is_clear = is_followed or not is_kept_away(nominated.node)
        with self._lock:
            if not is_clear:
                if nominated.is_canary:
                    self._unclear()
            elif nominated.is_canary and is_followed:
                self._followed()
            elif nominated.is_canary:
                self._missed_one(nominated.namespace, CanaryOutcome.ELSEWHERE)
            else:
                self._missed_pods = 0 if is_followed else self._missed_pods + 1
                if self._missed_pods >= MISSES and self._state in (Nominations.UNKNOWN, Nominations.FOLLOWED):
                    self._doubt()

    # Under the lock

    def _is_canary(self, advice: Advice, now: float) -> bool:
        # One at a time does little harm. In doubt all pods prefer their best node, and a verdict is wanted.
        most = max(CANARIES - len(self._missed), 1) if self._state is Nominations.DOUBTED else 1
        if now < self._due or len(self._canaries) >= most or advice.best is None or advice.runner_up is None:
            return False
        # Pods of one tenant may be kept away by what is not known here: others are asked first.
        namespace = advice.pod.partition("/")[0]
        if advice.margin is None or advice.margin > NEAR_POINTS or namespace in self._missed:
            self._passed_over = now if self._passed_over is None else self._passed_over
            if now - self._passed_over < PATIENCE_SECONDS:
                return False
        self._passed_over = None
        return True

    def _look_at_version(self, now: float) -> None:
        version = self._version()
        if version != self._known_version:
            self._known_version, self._due = version, min(self._due, now)

    def _forget_old(self, now: float) -> None:
        for uid in [uid for uid, at in self._canaries.items() if now - at > _OPEN_SECONDS]:
            del self._canaries[uid]
            self._open.pop(uid, None)
            self._unclear()

    def _unclear(self) -> None:
        # Not the very next pod: what keeps this one away may keep all of its kind away.
        self.canaries[CanaryOutcome.UNCLEAR] += 1
        self._due = self._clock() + PATIENCE_SECONDS

    def _followed(self) -> None:
        if self._state is Nominations.IGNORED:
            logger.warning("kube-scheduler follows nominations again: held pods are nominated")
        self.canaries[CanaryOutcome.FOLLOWED] += 1
        self._state, self._due = Nominations.FOLLOWED, self._clock() + EVERY_SECONDS
        self._missed.clear()
        self._missed_pods, self._retry_seconds = 0, RETRY_SECONDS

    def _missed_one(self, namespace: str, outcome: CanaryOutcome) -> None:
        self.canaries[outcome] += 1
        self._missed.append(namespace)
        now = self._clock()
        if self._state is Nominations.IGNORED:
            if now >= self._due:  # others were under way
                self._retry_seconds = min(2 * self._retry_seconds, EVERY_SECONDS)
                self._due = now + self._retry_seconds
        elif len(self._missed) >= CANARIES:
            self._state, self._due = Nominations.IGNORED, now + self._retry_seconds
            is_refused = outcome is CanaryOutcome.REFUSED
            logger.error(
                "nominations are not followed (%s): held pods prefer their nodes from now on; docs/operate/alerts.md, "
                "ForecastNominationsIgnored",
                "the API server does not store them" if is_refused else "kube-scheduler decides itself",
            )
        else:
            self._doubt()

    def _doubt(self) -> None:
        self._state, self._due, self._missed_pods = Nominations.DOUBTED, self._clock(), 0


def as_canary(advice: Advice, share: float | None) -> Advice:
    """Return the advice with its second-best node in place of the best. share: of that node, see Advice."""
    return replace(advice, best=advice.runner_up, runner_up=advice.best, margin=None, share=share)
