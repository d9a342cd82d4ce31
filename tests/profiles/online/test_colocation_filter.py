"""Low-priority pods in the gap: against the curves themselves, node by node, and one pod after the other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cluster.predicted.node_curves import gather, node_curves
from forecast.resources import CPU
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.filters.filter import ClusterView
from placement.index.index import PlacementIndex
from profiles.online.colocation_loop import Colocation
from profiles.online.colocation_settings import GapOptions
from testing.constants import with_constants
from testing.placement.views import verdicts
from tests.scorer.live_cluster import at, loaded, node, pod_of
from tests.scorer.scorer_at import LiveScorer

USE = "forecast-scheduler.io/virtual-request"
UNKNOWN = "predicted load is not known"


def filler(name: str = "filler", *, cpu: float = 0.01, uses: float | None = None, on: str = "", **more: Any) -> PodInfo:
    """A pod of low priority that no model knows. uses: cores, as it declares."""
    said = {} if uses is None else {USE: f'{{"cpu": {uses}}}'}
    return replace(pod_of(None, name, on, cpu=cpu, memory=0.01, annotations=said), priority=-1, **more)


class Scene:
    """node-0 to node-3 with services whose evenings are ten times their nights, at some hour of the day."""

    def __init__(
        self, *pods: PodInfo, hour: float = 4.0, sizes: tuple[float, ...] = (10.0, 20.0, 40.0), **options: Any
    ) -> None:
        settings = {"ceiling": 0.5, **options}
        self.live = LiveScorer(hour, without_model=True, sizes=sizes)
        self.colocation = Colocation(
            self.live.scorer.tables, with_constants(GapOptions(), **settings), clock=self.live.clock
        )
        for pod in pods:
            self.live.put(pod)
        self.cluster = self.live.scorer.tables._cluster
        self.index = PlacementIndex(self.cluster.state)
        self.cluster.listeners.append(self.index.apply)
        self.options = self.colocation.filter.options

    def with_model(self) -> Scene:
        self.live.scorer.tables.install(loaded())
        self.live.scorer.tables.tick()
        self.colocation.keep_up()
        return self

    @property
    def view(self) -> ClusterView:
        return ClusterView(self.cluster, self.index)

    def reasons(self, pod: PodInfo) -> dict[str, frozenset[str]]:
        found = verdicts(self.colocation.filter, pod, self.view)
        assert not any(verdict.preemptible and verdict.reasons for verdict in found.values())
        return {name: verdict.reasons for name, verdict in found.items()}

    def passing(self, pod: PodInfo) -> set[str]:
        return {name for name, why in self.reasons(pod).items() if not why}

    def capacity(self, name: str) -> float:
        return float(self.cluster.capacity[self.cluster.state.row_of[name], CPU])

    def highest(self, name: str, use: float = 0.0) -> float:
        """Share of CPU, by the definition: the higher of both curves at every half hour, plus so many cores."""
        predicted = self.cluster.predicted
        assert predicted is not None
        row, horizon = self.cluster.state.row_of[name], predicted.horizon
        end = min(horizon.slot + 2 * self.options.hours, horizon.n_slots)
        fading = horizon.fading()
        with_spread = node_curves(
            predicted.profiles, predicted.bases, gather(predicted, [row]), horizon.days, fading=fading
        )
        capacity = float(predicted.capacity[row, CPU])
        bound = with_spread.curve(1)[0, CPU] / capacity
        weighed = predicted.load.share(np.array([row]))[0, CPU]
        return float(np.maximum(bound, weighed)[horizon.slot : end].max()) + use / capacity


SERVICES = [pod_of(i, f"service-{i}-{n}", f"node-{n}") for i in range(3) for n in range(3)]


@pytest.mark.parametrize("hour", [0.0, 4.0, 17.0, 20.5, 23.75])
@pytest.mark.parametrize("hours", [1, 6, 24, 168])
def test_node_by_node_as_the_curves_say(hour: float, hours: int) -> None:
    scene = Scene(*SERVICES, hour=hour, hours=hours).with_model()
    names = ("node-0", "node-1", "node-2")
    room = {name: 0.5 * scene.capacity(name) - scene.highest(name) * scene.capacity(name) for name in names}
    uses = [room[name] + step for name in names for step in (-0.05, 0.05)]
    for use in (0.0, *(use for use in uses if use > 0)):
        assert scene.passing(filler(uses=use)) == {name for name in names if use <= room[name]}, use


def test_pods_that_follow_each_other_fill_the_gap_and_no_more() -> None:
    scene = Scene(*SERVICES, sizes=(40.0,)).with_model()
    placed, gap = 0, 0.5 * 40 - 40 * scene.highest("node-0")
    while "node-0" in scene.passing(filler(uses=1.0)):
        scene.live.scorer.charge_provisionally(filler(f"filler-{placed}", uses=1.0), "node-0", 60)
        placed += 1
        assert placed < 40
    assert placed > 3 and gap - 1.2 <= placed <= gap + 0.1


def test_what_was_declared_is_not_counted_again_when_it_is_measured() -> None:
    scene = Scene(filler("a", uses=6.0, on="node-0", started=at(3.0)), sizes=(20.0,)).with_model()
    room = 20 * (0.5 - scene.highest("node-0"))

    def fits(use: float) -> bool:
        return scene.passing(filler(uses=use)) == {"node-0"}

    assert fits(room - 0.1) and not fits(room + 0.1)
    predicted = scene.cluster.predicted
    assert predicted is not None
    expected = (predicted.base_now() + predicted.pods_now())[0]
    for beyond, less in ((0.0, 0.0), (1.0, 1.0)):
        scene.live.measure({"node-0": expected + beyond})
        scene.colocation.bounds.refresh(scene.live.scorer.tables)
        assert fits(room - less - 0.5) and not fits(room - less + 0.5), beyond


def test_services_that_the_model_knows_use_what_they_declare_at_least() -> None:
    def room(declared: str) -> float:
        known = replace(pod_of(0, "known", "node-0", annotations={USE: declared}), priority=-1)
        scene = Scene(known, sizes=(40.0,)).with_model()
        free = 40.0 * (0.5 - scene.highest("node-0"))
        assert scene.passing(filler(uses=free - 0.05)) == {"node-0"}
        assert scene.passing(filler(uses=free + 0.05)) == set()
        return free

    assert room('{"cpu": 0.01}') == pytest.approx(room("{}"))
    assert room('{"cpu": 12}') < room("{}") - 5
    before_the_model = Scene(pod_of(0, "known", "node-0", annotations={USE: '{"cpu": 30}'}), sizes=(40.0,))
    assert before_the_model.passing(filler(uses=0.1)) == set()


@pytest.mark.parametrize("said", ["", "{", '{"cpu": -1}', '{"cpu": "NaN"}', "[" * 5000, '{"cpu": 1e300}', '{"gpu": 1}'])
def test_anything_may_stand_in_an_annotation(said: str) -> None:
    scene = Scene(sizes=(10.0,)).with_model()
    for name in ("a", "b"):
        scene.live.put(replace(filler(name, on="node-0"), annotations={USE: said}))
    scene.reasons(replace(filler(), annotations={USE: said}))
    for name in ("a", "b"):
        scene.live.delete(filler(name))
    scene.colocation.bounds.refresh(scene.live.scorer.tables)
    assert scene.passing(filler(uses=3.0)) == {"node-0"}


def test_without_a_model_requests_and_usage_decide() -> None:
    scene = Scene(pod_of(1, "there", "node-0", cpu=3.0), sizes=(10.0, 10.0))
    assert scene.passing(filler(cpu=2.0)) == {"node-0", "node-1"}
    assert scene.passing(filler(cpu=2.1)) == {"node-1"}
    assert scene.passing(filler(uses=2.1)) == {"node-1"}
    scene.live.put(filler("other", uses=4.0, on="node-1"))
    assert scene.passing(filler(uses=2.1)) == set()
    scene.live.later(400)
    scene.live.measure({"node-0": [4.9, 0, 0, 0, 0], "node-1": [0.1, 0, 0, 0, 0]})
    assert scene.passing(filler(cpu=0.5)) == {"node-1"}
    assert scene.reasons(filler(cpu=0.5))["node-0"] == {
        "requests or usage of cpu would pass 50 %, there is no forecast"
    }


def test_who_waits_for_bounds_is_told_when_they_are_made() -> None:
    scene = Scene(sizes=(10.0,))
    told: list[bool] = []  # whether there was a place by then
    scene.colocation.listeners.append(lambda: told.append(bool(scene.passing(filler()))))
    scene.colocation.keep_up()
    assert not told, "there is no model"
    scene.live.scorer.tables.install(loaded())
    scene.live.scorer.tables.tick()
    assert scene.reasons(filler()) == {"node-0": {UNKNOWN}}
    scene.colocation.keep_up()
    assert told == [True]
    scene.colocation.keep_up()
    assert told == [True], "nothing is new"
    scene.live.later(61)
    scene.colocation.keep_up()
    assert told == [True, True]


def test_what_wakes_a_pod_that_found_no_gap() -> None:
    tested = Scene().colocation.filter
    woken = {kind for kind in EventKind if tested.hint(filler(), ClusterEvent(kind)) is Hint.QUEUE}
    assert EventKind.POD_LEFT in woken and EventKind.FORECAST_CHANGED in woken and EventKind.TIMEOUT in woken
    assert EventKind.POD_BOUND not in woken and EventKind.STORAGE_CHANGED not in woken


def test_a_row_that_another_node_took_over() -> None:
    scene = Scene(sizes=(10.0, 40.0)).with_model()
    scene.live.scorer.tables.delete(Kind.NODES, node("node-0", 10.0))
    scene.live.scorer.tables.put(Kind.NODES, node("node-8", 40.0))
    assert scene.cluster.state.row_of["node-8"] == 0
    assert scene.reasons(filler()) == {"node-8": {UNKNOWN}, "node-1": frozenset()}
