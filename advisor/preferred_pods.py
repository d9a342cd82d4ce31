"""New pods that prefer nodes instead of being held: which nodes these are, and where each pod is reckoned with.

    asked, before the creation --charge--> a stand-in is assumed on the node that kube-scheduler will probably take
    watch: the pod is there    --move----> the pod itself is, on every replica: its annotation names the node
    watch: it is bound, wherever ------->  nothing is assumed any more
    it never comes, or is not bound in time: the charge is over

A pod has neither a UID nor, from a controller, a name when webhooks see it. The UID of the API server's question stands
for it, and the annotation that the webhook writes brings it back. Any client may write that annotation. It moves
nothing but the pod's own charge, which the same client could put on any node with `spec.nodeName`.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import msgspec
import numpy as np

from advisor.advice_requests import advice_note
from base.errors import ForecastError
from cluster.assuming_cluster import AssumingCluster
from kube.objects.counted_pods import waits
from kube.objects.objects import PodInfo
from placement.decisions.decision import Advice
from placement.decisions.recorder import DecisionRecorder
from placement.filters.filter import ClusterView
from placement.gate_exemptions import ADVICE
from placement.preferred_nodes import PreferencesBody, PreferredNode, preferring
from placement.scores.default_scores import expected_choice
from scorer.judgement import Judge, Judgement
from scorer.scorer import Scorer
from scorer.scoring_policy import opts_out

_STAND_IN: Final = "asked/"
"""With the UID of the question behind it: the UID of a stand-in. No pod has a slash in its own."""

_BEST_WEIGHT: Final = 100
_NEXT: Final = 0.4
"""Weight of a node as a share of that of the node before it."""


class TooLate(ForecastError):
    """The answer is not waited for any more."""


class PreferenceOutcome(StrEnum):
    """What became of a question."""

    PREFERRED = "preferred"
    NO_NODE = "no_node"
    NO_FORECAST = "no_forecast"
    OPTED_OUT = "opted_out"
    LATE = "late"


class _Note(msgspec.Struct):
    """What of our annotation is read again. asked: UID of the question; expected: '' = the node itself."""

    node: str = ""
    asked: str = ""
    expected: str = ""


@dataclass(frozen=True, slots=True)
class _Open:
    """A question whose pod has not come yet. until: unix seconds."""

    advice: Advice
    until: float


@dataclass(slots=True)
class PreferenceFigures:
    """Since the start. charges: stand-ins by whether their pod came."""

    asked: Counter[PreferenceOutcome]
    came: int = 0
    never_came: int = 0


class PreferredPods:
    """For any thread. Made before the cluster is read.

    n_nodes        : most nodes to name
    charge_seconds : for which a pod that does not come is charged
    bound_seconds  : for which one that came is, if it is not bound
    has_forecast   : without one nothing is preferred
    judge          : of the loop
    """

    def __init__(
        self,
        scorer: Scorer,
        view: ClusterView,
        recorder: DecisionRecorder,
        *,
        n_nodes: int,
        charge_seconds: float,
        bound_seconds: float,
        has_forecast: Callable[[], bool],
        judge: Judge,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._scorer, self._view, self._recorder, self._clock = scorer, view, recorder, clock
        self._n_nodes, self._charge_seconds, self._bound_seconds = n_nodes, charge_seconds, bound_seconds
        self._has_forecast, self._judge = has_forecast, judge
        self._open: OrderedDict[str, _Open] = OrderedDict()  # by UID of the question, the oldest first
        self.figures: Final = PreferenceFigures(Counter())
        with scorer.tables.reading() as cluster:
            self._cluster = cluster
            cluster.on_new_pod.append(self._came)

    def prefer(self, pod: PodInfo, *, due: float, dry_run: bool = False) -> PreferencesBody:
        """Say which nodes a pod prefers that is about to be created, and reckon with it on one of them.

        pod     : its UID is that of the question
        due     : unix seconds until which the answer is waited for
        dry_run : reckon with nothing
        Raises TooLate.
        """
        with self._scorer.tables.reading() as cluster:
            outcome, body = self._answer(cluster, pod, due, dry_run)
            self.figures.asked[outcome] += 1
        if outcome is PreferenceOutcome.LATE:
            raise TooLate("the time to answer is over: the pod is created without a preference")
        return body

    def _answer(
        self, cluster: AssumingCluster, pod: PodInfo, due: float, dry_run: bool
    ) -> tuple[PreferenceOutcome, PreferencesBody]:
        now = self._clock()
        self._forget_old(now)
        if now >= due:
            return PreferenceOutcome.LATE, _none("late")
        if opts_out(pod):
            return PreferenceOutcome.OPTED_OUT, _none("the pod has opted out")
        if not self._has_forecast():
            return PreferenceOutcome.NO_FORECAST, _none("there is no usable forecast")
        judged = self._judge(pod)
        if judged is None or not judged.ranking:
            why = "no node passes the filters" if judged else f"pods of {pod.scheduler_name} are not advised on"
            return PreferenceOutcome.NO_NODE, _none(why)
        nodes = preferred_nodes(judged.ranking, self._n_nodes)
        expected = self._expected(preferring(pod, nodes), judged)
        advice = self._advice(pod, judged, now)
        if self._clock() >= due:
            return PreferenceOutcome.LATE, _none("late")
        if not dry_run:
            stand_in = replace(pod, uid=_STAND_IN + pod.uid, name=f"{pod.name[:200]}.{pod.uid}", created=now)
            with self._scorer.tables.changing():
                cluster.charge(stand_in, expected, now + self._charge_seconds)
            self._open[pod.uid] = _Open(advice, now + self._charge_seconds)
        return PreferenceOutcome.PREFERRED, PreferencesBody(nodes, _note(advice, expected))

    def _expected(self, pod: PodInfo, judged: Judgement) -> str:
        """Return the node that kube-scheduler will probably take. Nodes that we pass over it does not."""
        row_of, names = self._view.state.row_of, self._view.state.names
        rows = np.sort(np.array([row_of[name] for name in {*judged.totals, *judged.passed_over}], dtype=np.int64))
        return names[int(rows[expected_choice(pod, self._view, rows, np.zeros_like(rows), 0)])]

    def _advice(self, pod: PodInfo, judged: Judgement, now: float) -> Advice:
        tables = self._scorer.tables
        level, reasons = tables.level()
        best, runner_up = judged.ranking[0], next(iter(judged.ranking[1:2]), None)
        points = {node: round(judged.totals[node]) for node in judged.ranking[:2]}
        peak = self._scorer.expected_peak(pod, best)  # now: what stands for the pod would count twice
        return Advice(
            uid=pod.uid,
            pod=f"{pod.namespace}/{pod.name}",
            service=str(self._cluster.state.service_key(pod)),
            at=now,
            n_nodes=len(judged.totals),
            nodes=(),
            points=points,
            best=best,
            runner_up=runner_up,
            margin=None if runner_up is None else points[best] - points[runner_up],
            peak=lambda: peak,
            level=level.name.lower(),
            reasons=reasons,
            model_version=tables.version,
            model_age_seconds=tables.model_age(),
            metrics_age_seconds=tables.metrics_age(),
            seconds=self._clock() - now,
            policy=judged.policy,
            policy_because=judged.policy_because,
        )

    def _came(self, pod: PodInfo) -> None:
        """The watch shows a pod for the first time: what stood for it goes. Under the lock."""
        note = _note_of(pod)
        if note is None:
            return
        self._cluster.forget(_STAND_IN + note.asked)
        asked = self._open.pop(note.asked, None)
        if asked is not None:
            self.figures.came += 1
            self._recorder.advised(replace(asked.advice, uid=pod.uid, pod=f"{pod.namespace}/{pod.name}"))
        node = note.expected or note.node
        if waits(pod) and not pod.gates and node in self._view.state.row_of:
            self._cluster.charge(pod, node, self._clock() + self._bound_seconds)

    def _forget_old(self, now: float) -> None:
        while self._open and next(iter(self._open.values())).until < now:
            self._open.popitem(last=False)
            self.figures.never_came += 1


def preferred_nodes(ranking: Sequence[str], n_nodes: int) -> list[PreferredNode]:
    """Return the first nodes of a ranking with weights that fall fast, to 1.

    kube-scheduler scales NodeAffinity so that the highest sum among the nodes that it looks at is 100, and counts it
    twice. So whichever of these nodes is the first that it looks at is ahead of the next one by 120 points, which its
    other scores seldom make up for.
    """
    return [
        PreferredNode(node, max(round(_BEST_WEIGHT * _NEXT**place), 1)) for place, node in enumerate(ranking[:n_nodes])
    ]


def _none(because: str) -> PreferencesBody:
    return PreferencesBody([], because=because)


def _note(advice: Advice, expected: str) -> str:
    """Return the text of the annotation."""
    said = msgspec.json.decode(advice_note(advice)) | {"mode": "prefer", "asked": advice.uid}
    if expected != advice.best:
        said["expected"] = expected
    return msgspec.json.encode(said).decode()


def _note_of(pod: PodInfo) -> _Note | None:
    """Return what our annotation says of a pod that prefers nodes; None = it does not."""
    text = pod.annotations.get(ADVICE)
    if text is None:
        return None
    try:
        note = msgspec.json.decode(text, type=_Note)
    except (msgspec.DecodeError, RecursionError):
        return None
    return note if note.asked and note.node else None
