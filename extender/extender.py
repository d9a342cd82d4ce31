"""The extender: filters and points for kube-scheduler, from the scorer's tables. Implements `extender_api.ExtenderApi`.

/filter      our filters over all nodes at once -> those asked for
/prioritize  scores -> points around 0 -> the node that will probably be taken is charged -> advice
watch        a pod advised on is bound -> the decision is complete (decisions/)
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import TypeVar

import numpy as np

from base.arrays import Bools, Floats, Ints
from base.errors import ForecastError
from cluster.tables.changes import Change, PodChange
from extender.extender_api import Filtered, VictimsByUid
from extender.extender_options import ExtenderOptions
from extender.points import points_of, shortened
from extender.score_sources import LocalScores, ScoreSource
from kube.objects.objects import PodInfo
from placement.decisions.decision import Advice, shadow_node
from placement.decisions.recorder import DecisionRecorder
from placement.filters.filter import ClusterView, Rejection
from placement.index.index import INDEXED_KINDS, PlacementIndex
from placement.node_rules import node_rules
from placement.policies.policy import ChosenPolicy, OnePolicyForAll, Policies, Policy, shortened_name
from placement.scores.default_scores import expected_choice
from scorer.answers import Peak, ScorerStatus
from scorer.scorer import Scorer
from scorer.scorer_api import Scored
from scorer.scoring_policy import scoring_policy

logger = logging.getLogger(__name__)

Column = TypeVar("Column", Bools, Ints)

_FRESH_SECONDS = 0.1
"""kube-scheduler asks for scores some milliseconds after the filters; what is older was for another attempt."""

_PATIENCE_SECONDS = 0.02
"""Seconds that a filter waits until the pod before is noted. A remote scorer that hangs must not make filters late: a
late filter lets every node pass.
"""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Scores of a pod made after its filters. at: by the stopwatch."""

    pod: PodInfo
    nodes: Sequence[str]
    policy: Policy
    scored: Scored
    at: float


@dataclass(frozen=True, slots=True)
class _Judged:
    """One pod that was replied on. ranking, known, points, replied: (n_nodes,), as
    `nodes`; replied: points of the reply."""

    pod: PodInfo
    nodes: Sequence[str]
    chosen: ChosenPolicy
    scored: Scored
    ranking: Floats
    known: Bools
    points: Ints
    replied: Ints
    reply: Mapping[str, int]
    seconds: float
    is_late: bool


class Extender:
    """For any thread. Made before the scorer reads its cluster, so that its tables follow from the start.

    rules : about nodes; `look` under the lock of the tables, every second
    """

    def __init__(
        self,
        scorer: Scorer,
        options: ExtenderOptions | None = None,
        *,
        scores: ScoreSource | None = None,
        policies: Policies | None = None,
        recorder: DecisionRecorder | None = None,
        clock: Callable[[], float] = time.time,
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> None:
        """
        scores   : None = the scorer's own
        policies : which pod is placed how; None = all as the options say
        recorder : receives every advice and binding; None = not recorded
        clock    : unix seconds; stopwatch: seconds from any moment
        """
        self.options = options or ExtenderOptions()
        self._scorer, self._scores = scorer, scores or LocalScores(scorer)
        self._recorder, self._clock, self._stopwatch = recorder, clock, stopwatch
        self._policies = policies or OnePolicyForAll(self.options.policy(scoring_policy(scorer.options)))
        self._awaited: dict[str, str] = {}  # node to which a pod was charged whose binding was not seen, by UID
        self._right = self._wrong = 0
        self._put_off: deque[_Judged] = deque()
        self._prepared: _Prepared | None = None
        self._scoring, self._settling = threading.Lock(), threading.Lock()
        with scorer.tables.reading() as cluster:
            self._tables = cluster
            rules = node_rules(cluster, self.options.rules, None, clock=clock)
            self.rules = rules.under(lambda pod: self._policies.choose(pod).policy.cards)
            self._view = ClusterView(cluster, PlacementIndex(cluster.state), self.rules.tables)
            scorer.tables.attach(INDEXED_KINDS, self._view.index)
            for follower in self.rules.followers():
                scorer.tables.attach((), follower)
            cluster.listeners.append(self._notice_bindings)

    def filter(self, pod: PodInfo, nodes: Sequence[str]) -> Filtered:
        """Which of the nodes pass our filters."""
        filters = self._policies.choose(pod).policy.filters
        if self.options.answers.shadow or not (filters or self.rules.room.has_any):
            return Filtered(nodes)
        self._settle(_PATIENCE_SECONDS)  # the pod before this one counts
        with self._scorer.tables.reading():
            self._scorer.tables.forget(pod.uid)  # asked about again, it was not bound: it must not count against itself
            ours, room = self.rules.in_place_of(filters), self.rules.room
            rejections = [found for one in (*ours, room) for found in one.filter(pod, self._view)]
            if not rejections:
                return Filtered(nodes)
            rows = self._rows(nodes)
            reasons = _reasons(rejections, rows)
            for position in np.flatnonzero(np.isin(rows, room.own_rows(pod, self._view, ours))).tolist():
                reasons.pop(position, None)
        if not reasons:
            return Filtered(nodes)
        failed: dict[str, str] = {}
        unresolvable: dict[str, str] = {}
        for position, (reason, preemptible) in reasons.items():
            (failed if preemptible else unresolvable)[nodes[position]] = reason
        return Filtered([n for position, n in enumerate(nodes) if position not in reasons], failed, unresolvable)

    def prioritize(self, pod: PodInfo, nodes: Sequence[str], *, due: float = math.inf) -> Mapping[str, int]:
        """Points of the nodes; those with 0 are left out. due: by the stopwatch; a later reply is not heard."""
        began = self._stopwatch()
        with self._scoring:
            self._settle()
            self._scorer.tables.forget(pod.uid)
            chosen = self._policies.choose(pod)
            policy = chosen.policy
            scored = self._prepared_for(pod, nodes, policy) or self._scores.score(pod, nodes, policy.scoring)
        known = _known(nodes, scored.unknown_nodes)
        ranking = scored.ranking
        order = self._further_points(pod, nodes, policy)
        points = points_of(ranking, known, self.options.answers.score_per_point) + order
        ranking = ranking + order * self.options.answers.score_per_point
        named = shortened(points, self.options.answers.longest_reply)
        reply = dict(zip([nodes[i] for i in named.tolist()], points[named].tolist(), strict=True))
        replied = np.zeros_like(points)
        if not self.options.answers.shadow:
            replied[named] = points[named]
        now = self._stopwatch()
        judged = _Judged(pod, nodes, chosen, scored, ranking, known, points, replied, reply, now - began, now > due)
        self._put_off.append(judged)  # kube-scheduler waits for the reply, and for nothing of this
        return {} if self.options.answers.shadow else reply

    def prepare(self, pod: PodInfo, nodes: Sequence[str]) -> None:
        """Score ahead: kube-scheduler is busy with its own scores before it asks for ours."""
        if len(nodes) < 2:
            return  # it will not ask
        with self._scoring:
            self._settle()
            policy = self._policies.choose(pod).policy
            try:
                scored = self._scores.score(pod, nodes, policy.scoring)
            except ForecastError:  # /prioritize asks once more, and says so
                return
            self._prepared = _Prepared(pod, nodes, policy, scored, self._stopwatch())

    def settle(self) -> None:
        """Do what was put off until the reply to /prioritize is out."""
        self._settle()

    def preempt(self, pod: PodInfo, victims: Mapping[str, VictimsByUid]) -> Mapping[str, VictimsByUid]:
        """Nodes with victims where our filters would let the pod in, or might once the victims are gone."""
        candidates = {node: of for node, of in victims.items() if of.pods}
        if self.options.answers.shadow:
            return candidates
        unresolvable = self.filter(pod, list(candidates)).unresolvable
        return {node: of for node, of in candidates.items() if node not in unresolvable}

    @property
    def charges(self) -> tuple[int, int]:
        """Pods bound to the node they were charged to, and to another."""
        return self._right, self._wrong

    def deadline_seconds(self, pod: PodInfo) -> float | None:
        """By when an answer about the pod is of use; None = as about any other."""
        return self._policies.choose(pod).policy.deadline_seconds

    def labels_of(self, namespace: str) -> Mapping[str, str] | None:
        """Labels of a namespace, None = not known. For any thread."""
        return self._view.index.namespaces.labels_of(namespace)

    def status(self) -> ScorerStatus:
        """The state of the scorer inside."""
        return self._scorer.status()

    # Inside

    def _settle(self, patience: float = -1) -> None:
        """patience: seconds to wait for the thread that is doing it; -1 = until it is done."""
        if not self._settling.acquire(timeout=patience):
            return
        try:
            while self._put_off:
                judged = self._put_off.popleft()
                try:
                    self._note(judged)
                except Exception:  # it is no fault of the pod that comes next
                    logger.exception("the work after a reply failed", extra={"pod": judged.pod.name})
        finally:
            self._settling.release()

    def _prepared_for(self, pod: PodInfo, nodes: Sequence[str], policy: Policy) -> Scored | None:
        """Scores made ahead, if they are of that very pod, nodes and policy and not a moment too old; used once."""
        prepared, self._prepared = self._prepared, None
        if prepared is None or prepared.pod != pod or prepared.policy is not policy:
            return None
        if self._stopwatch() - prepared.at > _FRESH_SECONDS:
            return None
        return prepared.scored if list(prepared.nodes) == list(nodes) else None

    def _note(self, judged: _Judged) -> None:
        """Charge the node that will probably be taken, and notify the recorder."""
        best, runner_up = _best_two(judged.ranking, judged.known)
        if self._recorder is not None:
            advice = self._advice(judged, best, runner_up)
            bound_to = self._recorder.advised(advice)
            if bound_to is not None:  # a watch that was quick
                self._policies.count(advice.policy)
                with self._scorer.tables.reading():
                    self._believe(advice, judged.pod.uid, bound_to)
        if best is not None and self.options.answers.charge > 0 and not judged.is_late:
            self._charge(judged)

    def _charge(self, judged: _Judged) -> None:
        """Reckon with the pod where kube-scheduler will probably bind it."""
        pod, nodes = judged.pod, judged.nodes
        with self._scorer.tables.reading() as cluster:
            rows = self._rows(nodes)
            there = np.flatnonzero(rows >= 0)
            if not len(there) or pod.uid in cluster.state.seat_of:
                return
            replied = judged.replied[there]
            choice = expected_choice(pod, self._view, rows[there], replied, self.options.answers.weight)
            node = nodes[int(there[choice])]
            self._scorer.charge_provisionally(pod, node, self.options.answers.charge)
            if pod.uid in cluster.assumed:
                self._awaited[pod.uid] = node
        self._scores.charge(pod, node, self.options.answers.charge)

    def _believe(self, advice: Advice, uid: str, node: str) -> None:
        """A shadow goes on as if its advice had been followed: otherwise it would advise the same nodes again."""
        believed = shadow_node(advice, node)
        row = None if believed is None else self._view.state.row_of.get(believed)
        if row is not None:
            self._tables.believe(uid, row)

    def _further_points(self, pod: PodInfo, nodes: Sequence[str], policy: Policy) -> Ints:
        """(n_nodes,) points beside those of our own scores."""
        with self._scorer.tables.reading():
            if not (self.options.scores or policy.pools is not None or self.rules.has_order(self._view)):
                return np.zeros(len(nodes), dtype=np.int64)
            return self.options.further_points(pod, self._view, self._rows(nodes), policy, self.rules)

    def _rows(self, nodes: Sequence[str]) -> Ints:
        """(n_nodes,) rows of nodes, -1 = not known."""
        return np.fromiter(map(self._view.state.row_of.get, nodes, repeat(-1)), dtype=np.int64, count=len(nodes))

    def _advice(self, judged: _Judged, best: int | None, runner_up: int | None) -> Advice:
        pod, nodes, points = judged.pod, judged.nodes, judged.points
        version = judged.scored.model_version
        ages = self._scorer.ages()
        return Advice(
            uid=pod.uid,
            pod=f"{pod.namespace}/{pod.name}",
            service=str(self._scorer.service_of(pod)),
            at=self._clock(),
            n_nodes=len(nodes),
            nodes=nodes,
            points=judged.reply,
            best=None if best is None else nodes[best],
            runner_up=None if runner_up is None else nodes[runner_up],
            margin=None if best is None or runner_up is None else int(points[best] - points[runner_up]),
            peak=partial(self._peak, pod, None if best is None or version is None else nodes[best]),
            level=judged.scored.level.name.lower(),
            reasons=(*_reasons_of(judged.scored, judged.chosen), *self.options.troubles()),
            model_version=version,
            model_age_seconds=ages[0] if version is not None else None,
            metrics_age_seconds=ages[1],
            seconds=judged.seconds,
            is_shadow=self.options.answers.shadow,
            is_late=judged.is_late,
            policy=judged.chosen.policy.name,
            policy_because=judged.chosen.because,
        )

    def _peak(self, pod: PodInfo, node: str | None) -> Peak | None:
        return None if node is None else self._scorer.expected_peak(pod, node)

    def _notice_bindings(self, changes: Sequence[Change]) -> None:
        """Called under the lock for every change of the cluster: a pod that was charged, or gets a seat, was bound.

        Not those of many pods at once: they are assumed to be bound.
        """
        for change in changes:
            uid = change.pod.uid if isinstance(change, PodChange) else ""
            if not isinstance(change, PodChange) or uid in self._tables.assumed:
                continue
            if change.after is None:
                self._awaited.pop(uid, None)
                continue
            if change.before is not None and uid not in self._awaited:
                continue
            if (charged := self._awaited.pop(uid, None)) is not None:
                self._right += charged == change.pod.node
                self._wrong += charged != change.pod.node
            advice = None if self._recorder is None else self._recorder.bound(change.pod)
            if advice is not None:
                self._policies.count(advice.policy)
                self._believe(advice, uid, change.pod.node)


def _reasons_of(scored: Scored, chosen: ChosenPolicy) -> tuple[str, ...]:
    """Also where a scorer elsewhere, which reads the policies itself, chose another: its document is not ours."""
    if scored.policy in ("", chosen.policy.name):
        return scored.reasons
    return (*scored.reasons, f"the scorer elsewhere scored by policy {shortened_name(scored.policy)}")


def _reasons(rejections: Sequence[Rejection], rows: Ints) -> dict[int, tuple[str, bool]]:
    """Why nodes are rejected, by position in `rows`: the first reason, one that eviction cannot mend before others.

    rows : (n_nodes,) -1 = not known, which passes: kube-scheduler may know the node already
    """
    reasons: dict[int, tuple[str, bool]] = {}
    for rejection in rejections:
        for position in np.flatnonzero(_at(rejection.nodes, rows)).tolist():
            known = reasons.get(position)
            if known is None or (known[1] and not rejection.preemptible):
                reasons[position] = (rejection.reason, rejection.preemptible)
    return reasons


def _at(column: Column, rows: Ints) -> Column:
    """(n_nodes,) values of a column, (n_rows,), at rows; 0 or false where a row is -1."""
    there = rows >= 0
    values = np.zeros(len(rows), dtype=column.dtype)
    values[there] = column[rows[there]]
    return values


def _known(nodes: Sequence[str], unknown: Sequence[str]) -> Bools:
    """(n_nodes,) those that the scorer knows."""
    if not unknown:
        return np.ones(len(nodes), dtype=bool)
    strangers = set(unknown)
    return np.array([node not in strangers for node in nodes], dtype=bool)


def _best_two(ranking: Floats, known: Bools) -> tuple[int | None, int | None]:
    """Positions of the node ranked first and of the next; the first in the order asked among equals."""
    candidates = np.where(known, ranking, -np.inf)
    if not known.any():
        return None, None
    best = int(np.argmax(candidates))
    candidates[best] = -np.inf
    second = int(np.argmax(candidates)) if known.sum() > 1 else None
    return best, second
