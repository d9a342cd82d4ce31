"""A scorer with a clock that tests move and usage that tests set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import numpy as np

from base.arrays import AnyFloats, Floats
from base.errors import StoreError
from cluster.live.usage import NodeUsage
from cluster.model_watch import LoadedModel
from cluster.predicted.predicted_cluster import PredictedCluster
from cluster.state_source import State, StateSource
from forecast.model import PeakModel
from forecast.service_key import ServiceKey
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from scorer.options import ScorerOptions
from scorer.scorer import Scorer
from scorer.scoring_policy import ScoringPolicies
from testing.settable_clock import SettableClock
from tests.scorer.live_cluster import N_RESOURCES, at, loaded, measured, node


class SetUsage:
    """A UsageSource that says what a test has set; None = it cannot be asked."""

    def __init__(self) -> None:
        self.now: NodeUsage | None = None
        self.of_pods: dict[tuple[str, str], float] = {}

    def read(self) -> NodeUsage:
        if self.now is None:
            raise StoreError("nobody answers")
        return self.now

    def node_history(self, names: Sequence[str], since: datetime, until: datetime) -> Floats:
        if self.now is None:
            raise StoreError("nobody answers")
        return np.full((N_RESOURCES, round((until - since).total_seconds() / 1800)), 7.0)

    def service_history(self, service: ServiceKey, pods: Sequence[str], since: datetime, until: datetime) -> Floats:
        return self.node_history([], since, until)

    def pods(self, resource: str, names: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], float]:
        return {name: self.of_pods[name] for name in names if name in self.of_pods}


class LiveScorer:
    """A scorer of node-0 to node-3 at some hour of the model's first day."""

    def __init__(
        self,
        hour: float = 17.0,
        *,
        pods: Sequence[PodInfo] = (),
        model: LoadedModel | None = None,
        without_model: bool = False,
        options: ScorerOptions | None = None,
        policies: ScoringPolicies | None = None,
        sizes: Sequence[float] = (40.0, 40.0, 40.0, 40.0),
        steady: SettableClock[float] | None = None,
    ) -> None:
        self.clock, self.usage = SettableClock(at(hour)), SetUsage()
        self.contact: float | None = self.clock.now
        self.state: Callable[[], State] = lambda: (True, self.contact, {})
        self.scorer = Scorer(
            options,
            usage=self.usage,
            policies=policies,
            clock=self.clock,
            steady=steady,
            source=StateSource(lambda: self.state()),
        )
        self.scorer.tables.replace(Kind.NODES, [node(f"node-{i}", size) for i, size in enumerate(sizes)])
        self.scorer.tables.replace(Kind.PODS, pods)
        if not without_model:
            self.scorer.tables.install(model or loaded())
        self.scorer.tables.tick()

    def at(self, hour: float, day: int = 0, *, heard: bool = True) -> None:
        """Time passes, or is set back."""
        self.clock.now = at(hour, day)
        if heard:
            self.contact = self.clock.now
        self.scorer.tables.tick()
        self.scorer.tables.rebuild_if_needed()

    def later(self, seconds: float) -> None:
        self.clock.now += seconds
        self.contact = self.clock.now
        self.scorer.tables.tick()
        self.scorer.tables.rebuild_if_needed()

    def measure(self, usage: Mapping[str, AnyFloats | Sequence[float] | float], *, ago: float = 0.0) -> None:
        self.usage.now = measured(usage, self.clock.now - ago)
        self.scorer.tables.measure()

    def measure_as_expected(self) -> None:
        """Every node uses exactly what is predicted for this half hour."""
        predicted = tables(self)
        expected = predicted.base_now() + predicted.pods_now()
        self.measure({predicted.name_of(row): expected[row] for row in range(len(expected))})

    def error(self) -> Floats:
        """The live error of each node: (n_nodes, n_resources)."""
        predicted = tables(self)
        return predicted.load.live_error(range(predicted.load.n_nodes))

    def put(self, pod: PodInfo) -> None:
        self.scorer.tables.put(Kind.PODS, pod)

    def delete(self, pod: PodInfo) -> None:
        self.scorer.tables.delete(Kind.PODS, pod)


def tables(tested: LiveScorer) -> PredictedCluster:
    """Its predicted load."""
    predicted = tested.scorer.tables._cluster.predicted
    assert predicted is not None
    return predicted


def shares(tested: LiveScorer) -> np.ndarray:
    """(n_nodes, n_resources, n_points) of its predicted load."""
    return tables(tested).load.share(slice(None))[: len(tables(tested).capacity)]


def rebuilt(tested: LiveScorer, of: PeakModel | None = None) -> LiveScorer:
    """A scorer that hears of the end state only."""
    state = tested.scorer.tables._cluster.state
    anew = LiveScorer(pods=list(state.pods.values()), without_model=True)
    anew.clock.now = anew.contact = tested.clock.now
    anew.scorer.tables.replace(Kind.NODES, [info for info in state.nodes if info is not None])
    anew.scorer.tables.replace(Kind.REPLICA_SETS, list(state.replica_sets.values()))
    anew.scorer.tables.install(loaded(of))
    anew.scorer.tables.tick()
    return anew
