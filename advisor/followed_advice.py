"""Does kube-scheduler still follow nominations? Judged by which node each advised pod got; says how the next pods are
advised.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from functools import cache, partial
from typing import Final

from cluster.assuming_cluster import AssumingCluster
from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, PodChange, one_by_one
from kube.objects.objects import PodInfo
from placement.decisions.decision import Advice
from placement.decisions.recorder import DecisionRecorder
from placement.feasibility import verdict
from placement.filters.filter import ClusterView, Filter
from placement.what_if import WithoutPods
from scorer.answers import Peak

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

_KUBE_SCHEDULER: Final = "all filters that are known here pass: kube-scheduler decided otherwise"


class NominationTrust(Enum):
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
        self._state = NominationTrust.UNKNOWN
        self._due = clock()
        self._passed_over: float | None = None  # when a canary was due and a pod with two nodes was no good one
        self._retry_seconds = RETRY_SECONDS
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._canaries: dict[str, float] = {}  # by UID, when they were chosen
        self._missed: list[str] = []  # namespaces of canaries that were not followed, in a row
        self._missed_pods = 0
        self.canaries: Final[Counter[CanaryOutcome]] = Counter()

    @property
    def state(self) -> NominationTrust:
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
            return {NominationTrust.DOUBTED: Way.BOTH, NominationTrust.IGNORED: Way.PREFER}.get(
                self._state, Way.NOMINATE
            )

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
                if self._missed_pods >= MISSES and self._state in (NominationTrust.UNKNOWN, NominationTrust.FOLLOWED):
                    self._doubt()

    # Under the lock

    def _is_canary(self, advice: Advice, now: float) -> bool:
        # One at a time does little harm. In doubt all pods prefer their best node, and a verdict is wanted.
        most = max(CANARIES - len(self._missed), 1) if self._state is NominationTrust.DOUBTED else 1
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
        if self._state is NominationTrust.IGNORED:
            logger.warning("kube-scheduler follows nominations again: held pods are nominated")
        self.canaries[CanaryOutcome.FOLLOWED] += 1
        self._state, self._due = NominationTrust.FOLLOWED, self._clock() + EVERY_SECONDS
        self._missed.clear()
        self._missed_pods, self._retry_seconds = 0, RETRY_SECONDS

    def _missed_one(self, namespace: str, outcome: CanaryOutcome) -> None:
        self.canaries[outcome] += 1
        self._missed.append(namespace)
        now = self._clock()
        if self._state is NominationTrust.IGNORED:
            if now >= self._due:  # others were under way
                self._retry_seconds = min(2 * self._retry_seconds, EVERY_SECONDS)
                self._due = now + self._retry_seconds
        elif len(self._missed) >= CANARIES:
            self._state, self._due = NominationTrust.IGNORED, now + self._retry_seconds
            is_refused = outcome is CanaryOutcome.REFUSED
            logger.error(
                "nominations are not followed (%s): held pods prefer their nodes from now on; docs/operate/alerts.md, "
                "ForecastNominationsIgnored",
                "the API server does not store them" if is_refused else "kube-scheduler decides itself",
            )
        else:
            self._doubt()

    def _doubt(self) -> None:
        self._state, self._due, self._missed_pods = NominationTrust.DOUBTED, self._clock(), 0


def as_canary(advice: Advice, peak: Callable[[], Peak | None]) -> Advice:
    """Return the advice with its second-best node in place of the best. peak: of that node, see Advice."""
    return replace(advice, best=advice.runner_up, runner_up=advice.best, margin=None, peak=peak)


class BoundPods(NodesAndPodsOnly):
    """Implements Follower, to be attached after the tables of the view.

    filters_of : all filters that a pod has to pass
    following  : learns where pods went that were nominated; None = no part asks
    """

    def __init__(
        self,
        cluster: AssumingCluster,
        view: ClusterView,
        recorder: DecisionRecorder,
        filters_of: Callable[[PodInfo], Sequence[Filter]],
        following: Following | None = None,
    ) -> None:
        self._cluster, self._view, self._recorder, self._filters_of = cluster, view, recorder, filters_of
        self._following = following
        self._awaited: set[str] = set()  # assumed at the last look

    def apply(self, changes: Sequence[Change]) -> None:
        """Report pods that the watch shows on a node, each once: a running pod changes often."""
        for change in one_by_one(changes):
            if not isinstance(change, PodChange):
                continue
            uid = change.pod.uid
            if uid in self._cluster.assumed:
                self._awaited.add(uid)
                continue
            # One that was bound where it was assumed had its seat before.
            is_new = change.before is None or uid in self._awaited
            self._awaited.discard(uid)
            if is_new and change.after is not None:
                why = cache(partial(self._why_not_on, change.pod))  # two ask, and it takes all filters
                self._recorder.bound(change.pod, lambda advice, why=why: why(advice.best))  # type: ignore[misc]
                if self._following is not None:
                    self._following.bound(uid, change.pod.node, lambda node, why=why: why(node) != _KUBE_SCHEDULER)  # type: ignore[misc]

    def rebuild(self) -> None:
        """Look anew at what is assumed. Pods that were bound unseen expire in the recorder."""
        self._awaited = set(self._cluster.assumed.uids())

    def _why_not_on(self, pod: PodInfo, node: str | None) -> str:
        """As the cluster is now: what kept the pod from the node may have gone again."""
        row = None if node is None else self._view.state.row_of.get(node)
        if row is None:
            return f"node {node} is gone"
        waiting, at = replace(pod, node=""), self._view.state.row_of.get(pod.node)
        with WithoutPods(self._view) as without:
            # Where it sits it would keep itself away, by a term or a volume. A row without a Node would be given up.
            if at is not None and self._view.state.alive[at]:
                without.take(pod.uid)
            found = verdict(waiting, self._view, self._filters_of(waiting))
        for name, rejection in found.rejections:
            if rejection.nodes[row]:
                return f"{name}: {rejection.reason}"
        return _KUBE_SCHEDULER
