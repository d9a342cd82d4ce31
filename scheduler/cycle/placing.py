"""Where the pods of a unit go: like pods in batches, others one by one, each assumed on its node at once.

Everything happens in memory, under the lock of the tables. A batch gives what one by one would give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np

from base.arrays import Floats, Ints
from cluster.assuming_cluster import AssumingCluster
from cluster.degradation import Level
from cluster.predicted.unknown_capacity import NEUTRAL_SCORE, limited
from cluster.tracking import TrackedCluster
from kube.objects.objects import PodInfo
from placement.feasibility import FilterVerdict, verdict
from placement.filters.filter import ClusterView, Filter
from placement.node_order import in_order
from placement.plugins import NodePreference
from placement.policies.policy import Policy
from placement.reservations.reserved_room import own_row
from placement.scores.node_score import NodeScore
from placement.scores.plugin_weights import OURS, ScorePart
from scheduler.cycle.batch_plan import BatchPlan, Ranking
from scheduler.cycle.cycle_times import CycleTimes, Point
from scheduler.cycle.decisions import NodeChoice, highest
from scheduler.cycle.node_totals import candidates, further_parts, node_parts, sum_of
from scheduler.cycle.peak_ranking import PeakRanking
from scheduler.profile import SchedulingProfile
from scorer.scoring import FULL, FULL_PENALTY
from scorer.scoring_policy import opts_out

_ENDLESS = 2**31 - 1
_RESERVATION = "Reservation"


class PlainRanking:
    """Implements Ranking without a forecast. Positions in `rows`.

    Nodes that are in use to the last bit are avoided, as scorer/scoring.py does; nothing is known of the others.
    """

    def __init__(self, pod: PodInfo, cluster: TrackedCluster, rows: Ints, *, is_neutral: bool) -> None:
        """is_neutral: not even measured load counts"""
        self._landed: dict[int, int] = {}
        self._full_from = np.full(len(rows), _ENDLESS, dtype=np.int64)
        if not is_neutral:
            self._full_from = _full_from(pod, cluster, rows)
        self.values: Floats = np.where(self._full_from > 0, NEUTRAL_SCORE, NEUTRAL_SCORE - FULL_PENALTY)

    def short_list(self) -> tuple[list[int], list[float], list[int]]:
        """Return no nodes: none is judged exactly."""
        return [], [], []

    def land(self, at: int) -> float | None:
        """Return the value of the node, which may be full now."""
        landed = self._landed[at] = self._landed.get(at, 0) + 1
        return NEUTRAL_SCORE if landed < self._full_from[at] else NEUTRAL_SCORE - FULL_PENALTY

    def drop(self, at: int) -> None:
        """Do nothing: a node that takes no more has no state here."""


def _full_from(pod: PodInfo, cluster: TrackedCluster, rows: Ints) -> Ints:
    """Return how many more pods like this one fill a node, (n_nodes,); _ENDLESS for nodes without measured load."""
    capacity = cluster.capacity[rows]
    limits = limited(capacity) & ~cluster.capacity_assumed[rows]
    share = np.where(limits, cluster.virtual_available()[rows] / np.where(limits, capacity, 1.0), np.nan)
    left = share - (1.0 - FULL)  # (n_nodes, n_resources) NaN = not known
    of_pod = np.nan_to_num(cluster.expected_use(pod).amount) / np.where(limits, capacity, 1.0)
    pods = np.where(left <= 0, 0.0, np.ceil(left / np.where(of_pod > 0, of_pod, np.nan)))
    endless = np.where(np.isnan(pods), _ENDLESS, np.minimum(pods, _ENDLESS))
    return np.asarray(endless.min(axis=1).astype(np.int64))


@dataclass(frozen=True, slots=True)
class Placed:
    """Of like pods the first `len(rows)` got a node each.

    why_not : what the filters said when the next one was looked at; None = all have a node
    """

    rows: tuple[int, ...]
    why_not: FilterVerdict | None


@dataclass(frozen=True, slots=True)
class Looked:
    """What decides where one pod goes, while the tables are as they are.

    verdict     : of the filters
    rows        : (n_nodes,) rows among which the scores decide, in ascending order; none = the pod fits nowhere. One
                  whose room is reserved for the pod is the only one, though the filters reject it while that is held
    totals      : (n_nodes,) sums of scores of these, higher is better
    parts       : what each score adds to them
    passed_over : rows that pass the filters and come after `rows`, with the name of what put them there
    nominated   : row where room was made for the pod, which it takes whatever the scores say
    """

    pod: PodInfo
    verdict: FilterVerdict
    rows: Ints
    totals: Floats
    parts: Sequence[ScorePart]
    passed_over: Mapping[int, str]
    nominated: int | None

    def ranked(self) -> list[int]:
        """Rows that the pod may take, the one it takes first. Among equal ones the lower row comes first."""
        best = [int(row) for row in self.rows[np.argsort(-self.totals, kind="stable")]]
        if self.nominated is None:
            return best
        return [self.nominated, *(row for row in best if row != self.nominated)]


@dataclass(slots=True)
class UnitPlacer:
    """For one cycle, while the lock is held.

    level           : rung of the degradation ladder
    until           : unix seconds until which pods are assumed
    score_per_point : as of the extender: what a point of its protocol stands for
    one_by_one      : every pod by itself: for tests and benchmarks, the result is the same
    scores          : further Score plugins with their weights. See `use`
    preferences     : which nodes come first
    times           : what is done here, by extension point and plugin
    coming          : pods that are probably placed next: what is read for one is read for all of them
    choices         : by UID, how the node of each pod that was placed stood among the others
    movable         : by UID, rows that passed the filters, of pods that could as well go to another of them: only room
                      and scores differ, and of ours the predicted peak alone counts. None = it is not noted
    on_look         : called with what decides about the pod of `look_at`, a UID, before it is assumed anywhere; needs
                      one_by_one
    """

    view: ClusterView
    cluster: AssumingCluster
    level: Level
    until: float
    score_per_point: float = 0.2
    one_by_one: bool = False
    scores: Sequence[tuple[NodeScore, int]] = ()
    preferences: Sequence[NodePreference] = ()
    times: CycleTimes = field(default_factory=CycleTimes)
    coming: Callable[[], Iterable[PodInfo]] = tuple
    choices: dict[str, NodeChoice] = field(default_factory=dict)
    movable: dict[str, Ints] | None = None
    look_at: str = ""
    on_look: Callable[[Looked], None] = lambda looked: None

    def use(self, profile: SchedulingProfile) -> None:
        """The pods that follow are of this profile."""
        self.score_per_point = profile.score_per_point
        self.scores, self.preferences = profile.scores, profile.preferences

    def place(self, pods: Sequence[PodInfo], filters: Sequence[Filter], policy: Policy) -> Placed:
        """Like pods, as many as there is room for: assumed in the tables on return."""
        placed: list[int] = []
        while len(placed) < len(pods):
            rest = pods[len(placed) :]
            if rest[0].uid == self.look_at:
                self.on_look(self.look(rest, filters, policy))
            if (own := own_row(rest[0], self.view, self.cluster, filters)) is not None:
                placed.append(self._assume(rest[0], NodeChoice(policy, own, 1)))
                continue
            rest = self._before_next_room(rest)
            with self.times.at(Point.FILTER):
                found = verdict(rest[0], self.view, filters, took=self.times.filters())
                rows = candidates(found.passes, rest[0], self.view, self.level)
            if not len(rows):
                return Placed(tuple(placed), found)
            if (nominated := self._nominated(rest[0], rows)) is not None:
                placed.append(self._assume(rest[0], NodeChoice(policy, nominated, len(rows))))
                continue
            with self.times.at(Point.PREFER):
                rows, most = self._preferred(rest, policy, rows)
            placed += self._place_some(rest[:most], filters, policy, rows)
        return Placed(tuple(placed), None)

    def _before_next_room(self, pods: Sequence[PodInfo]) -> Sequence[PodInfo]:
        """Return the first of like pods, and those after it that no room is reserved for: these look for theirs."""
        rooms = self.cluster.rooms
        if not len(rooms):
            return pods
        return [pods[0], *takewhile(lambda pod: not rooms.open_for(pod), pods[1:])]

    def _nominated(self, pod: PodInfo, rows: Ints) -> int | None:
        """Where room was made for it, at the expense of others."""
        row = self.view.state.row_of.get(pod.nominated_node) if pod.nominated_node else None
        return None if row is None or row not in rows else row

    def look(self, pods: Sequence[PodInfo], filters: Sequence[Filter], policy: Policy) -> Looked:
        """What decides about the first of these like pods, which sits nowhere. Nothing is assumed."""
        pod, passed_over = pods[0], dict[int, str]()
        found = verdict(pod, self.view, filters)
        rows = candidates(found.passes, pod, self.view, self.level)
        _note_dropped(passed_over, np.flatnonzero(found.passes), rows, "predicted memory")
        own = own_row(pod, self.view, self.cluster, filters)
        if own is not None:
            rows = np.array([own], dtype=np.int64)
            _note_dropped(passed_over, np.flatnonzero(found.passes), rows, _RESERVATION)
            of_own = self._parts(pod, policy, rows)
            return Looked(pod, found, rows, sum_of(of_own, 1), of_own, passed_over, None)
        nominated = self._nominated(pod, rows) if len(rows) else None
        parts: Sequence[ScorePart] = ()
        if len(rows):
            rows, _ = self._preferred(pods, policy, rows, passed_over)
            parts = self._parts(pod, policy, rows)
        return Looked(pod, found, rows, sum_of(parts, len(rows)), parts, passed_over, nominated)

    def _preferred(
        self, pods: Sequence[PodInfo], policy: Policy, rows: Ints, passed_over: dict[int, str] | None = None
    ) -> tuple[Ints, int]:
        """Among which nodes scores decide, and for how many of the pods. passed_over: takes the other rows, with the
        name of the preference. See in_order."""
        most = len(pods)
        for preference in in_order(policy, self.preferences):
            with self.times.of(Point.PREFER, preference.name):
                preferred = preference.prefer(pods[0], most, self.view, rows)
            if passed_over is not None:
                _note_dropped(passed_over, rows, preferred.rows, preference.name)
            rows, most = preferred.rows, min(most, preferred.most)
        return rows, most

    def _place_some(
        self, pods: Sequence[PodInfo], filters: Sequence[Filter], policy: Policy, rows: Ints
    ) -> Sequence[int]:
        """At least the first pod."""
        pod, ranking = pods[0], None
        is_batch = not self.one_by_one and len(pods) > 1
        further = [*self._further_scores(pod, policy, rows)]
        is_unmoved = (is_batch or self.movable is not None) and self._is_unmoved(pod, filters, further)
        if is_batch and is_unmoved:
            with self.times.at(Point.SCORE), self.times.of(Point.SCORE, OURS):
                ranking = self._ranking(pod, policy, rows)
        if self.movable is not None and is_unmoved and not further and self._goes_by_peak(pod, policy):
            self.movable.update(dict.fromkeys((one.uid for one in (pods if ranking else pods[:1])), rows))
        if ranking is None:
            with self.times.at(Point.SCORE):
                best = self._best_row(pod, policy, rows)
            return [self._assume(pod, best)]
        chosen: list[int] = []
        with self.times.at(Point.SCORE):
            plan = BatchPlan(pod, self.view, filters, rows, ranking, policy, self.score_per_point, self.times, further)
            while len(chosen) < len(pods) and (next_best := plan.place()) is not None:
                self.choices[pods[len(chosen)].uid] = next_best
                chosen.append(next_best.row)
        self.cluster.assume_all(pods[: len(chosen)], chosen, self.until)
        return chosen

    def _assume(self, pod: PodInfo, choice: NodeChoice) -> int:
        self.cluster.assume(pod, self.view.state.names[choice.row], self.until)
        self.choices[pod.uid] = choice
        return choice.row

    def _best_row(self, pod: PodInfo, policy: Policy, rows: Ints) -> NodeChoice:
        """Of equal ones the first."""
        if len(rows) == 1:  # as preferences often leave it
            return NodeChoice(policy, int(rows[0]), 1)
        return highest(policy, rows, sum_of(self._parts(pod, policy, rows), len(rows)))

    def _parts(self, pod: PodInfo, policy: Policy, rows: Ints) -> Sequence[ScorePart]:
        """What each score adds to the sums of the rows."""
        further = further_parts(pod, self.view, rows, self._further_scores(pod, policy, rows))
        return node_parts(pod, self.view, rows, policy, self.level, self.score_per_point, further, self.times)

    def _is_unmoved(self, pod: PodInfo, filters: Sequence[Filter], further: Sequence[tuple[NodeScore, int]]) -> bool:
        """Whether like pods that land change nothing but what a plan keeps up to date."""
        return (
            not pod.constraints.affects_others
            and all(one.ignores_like_pods(pod, self.view) for one in filters)
            and all(score.ignores_like_pods(pod, self.view) for score, _ in further)
        )

    def _goes_by_peak(self, pod: PodInfo, policy: Policy) -> bool:
        """Whether of our scores the predicted peak counts, and no other."""
        is_known = self.cluster.predicted is not None and self.level < Level.REQUESTS and not opts_out(pod)
        return is_known and bool(policy.plugin_weights[OURS]) and _counts_peak_only(policy)

    def _ranking(self, pod: PodInfo, policy: Policy, rows: Ints) -> Ranking | None:
        """What a plan can go by; None = scores that have to be made again for each pod."""
        if self.level == Level.NEUTRAL or opts_out(pod):
            return PlainRanking(pod, self.cluster, rows, is_neutral=True)
        if not _counts_peak_only(policy) and policy.plugin_weights[OURS]:
            return None
        predicted = self.cluster.predicted
        if predicted is None or self.level == Level.REQUESTS:
            return PlainRanking(pod, self.cluster, rows, is_neutral=False)
        is_known = int(rows[-1]) < predicted.load.n_nodes and bool(predicted.load.known[rows].all())
        return PeakRanking(pod, self.cluster, rows, policy, self.coming) if is_known else None

    def _further_scores(self, pod: PodInfo, policy: Policy, rows: Ints) -> Iterator[tuple[NodeScore, int]]:
        """The further Score plugins that have something to say, by the weights of the policy or the profile."""
        for score, weight in self.scores:
            weight = int(policy.plugin_weights.get(score.name, weight))
            if weight and not score.skips(pod, self.view, rows):
                yield score, weight


def _counts_peak_only(policy: Policy) -> bool:
    return {name for name, weight in policy.scoring.weights.items() if weight > 0} == {"predicted_peak"}


def _note_dropped(passed_over: dict[int, str], before: Ints, after: Ints, by: str) -> None:
    if len(after) < len(before) or by == _RESERVATION:  # they are some of those; usually all
        passed_over.update(dict.fromkeys(np.setdiff1d(before, after).tolist(), by))
