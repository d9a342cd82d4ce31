"""The predicted load of the live cluster, kept up to date pod by pod, is that of the pods that are there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from base.arrays import Floats
from cluster.predicted.horizon import Horizon
from cluster.predicted.pod_profiles import Profiles
from cluster.predicted.predicted_cluster import PredictedCluster
from forecast.calendar import SLOTS_PER_DAY
from forecast.model import PeakModel
from forecast.resources import CPU, MEMORY
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo, QosClass
from tests.scorer.live_cluster import model, moment, pod_of, service

UNKNOWN = ServiceKey("shop", "Deployment", "new")
DAEMON = ServiceKey("shop", "DaemonSet", "agent")
SERVICES = [service(0), service(1), service(2), UNKNOWN, DAEMON]
FULL = np.full(5, 40.0)
HALF = np.array([20.0, 20.0, np.nan, 20.0, 20.0])


def autoscaled_model() -> PeakModel:
    """Service 2 follows its load."""
    autoscaled = model().autoscaled.copy()
    autoscaled[2] = 1
    return replace(model(), autoscaled=autoscaled)


PROFILES = Profiles(autoscaled_model())


def cluster(hour: float = 17.0) -> PredictedCluster:
    return PredictedCluster(PROFILES, Horizon.at(moment(hour), PROFILES.model.calendar))


def curve(predicted: PredictedCluster, node: int) -> Floats:
    """Predicted load of a node in base units where it has a capacity: (n_resources, n_points)."""
    capacity = np.nan_to_num(predicted.capacity[node])
    return np.asarray(predicted.load.share(np.array([node]))[0] * capacity[:, None], dtype=np.float64)


@dataclass
class Truth:
    """What is there, in the plainest of ways."""

    nodes: dict[int, tuple[str, Floats]] = field(default_factory=dict)
    pods: dict[str, tuple[PodInfo, ServiceKey, int, float]] = field(default_factory=dict)
    replicas: dict[ServiceKey, float] = field(default_factory=lambda: dict.fromkeys(SERVICES, 4.0))
    slot: int = 34

    def built(self) -> PredictedCluster:
        predicted = cluster(self.slot / 2)
        for row, (name, capacity) in self.nodes.items():
            predicted.set_node(row, name, capacity)
        for pod, key, node, weight in self.pods.values():
            predicted.place(pod, key, node, weight, self.replicas[key])
        return predicted


ROWS = st.integers(0, 3)
UIDS = st.integers(0, 7).map("p{}".format)
EVENTS = st.one_of(
    st.tuples(st.just("place"), UIDS, st.sampled_from(SERVICES), ROWS, st.sampled_from([0.0, 1.0, 1.0])),
    st.tuples(st.just("place"), UIDS, st.sampled_from(SERVICES), ROWS, st.sampled_from([0.0, 1.0, 1.0])),
    st.tuples(st.just("remove"), UIDS),
    st.tuples(st.just("replicas"), st.sampled_from(SERVICES), st.sampled_from([0.0, 1.0, 3.0, 8.0])),
    st.tuples(st.just("node"), ROWS, st.sampled_from(["node-0", "node-1", "new"]), st.sampled_from([FULL, HALF])),
    st.tuples(st.just("clear"), ROWS),
    st.tuples(st.just("slot"), st.integers(0, SLOTS_PER_DAY - 1)),
    st.tuples(st.just("ask"), st.floats(0, 50).map(lambda cpu: round(cpu, 1))),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(EVENTS, max_size=30))
def test_any_sequence_of_changes_gives_what_is_built_anew_from_the_end_state(events: list[tuple[object, ...]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cluster.predicted.predicted_cluster._MOST_IDLE_PROFILES", 2)
        truth, predicted = Truth(), cluster(17.0)
        for event in events:
            match event:
                case ("place", str(uid), ServiceKey() as key, int(node), float(weight)):
                    weight = 0.0 if key.belongs_to_node else weight
                    number = int(uid[1:])
                    qos = QosClass(number % 3)
                    pod = pod_of(None, uid, cpu=0.5 + number % 2, memory=1.0 + number, qos=qos)
                    pod = replace(pod, uid=uid)
                    predicted.place(pod, key, node, weight, truth.replicas[key])
                    truth.pods[uid] = (pod, key, node, weight)
                case ("remove", str(uid)):
                    predicted.remove(uid)
                    truth.pods.pop(uid, None)
                case ("replicas", ServiceKey() as key, float(count)):
                    predicted.set_replicas(key, count)
                    truth.replicas[key] = count
                case ("node", int(row), str(name), np.ndarray() as capacity):
                    predicted.set_node(row, name, capacity)
                    truth.nodes[row] = (name, capacity)
                case ("clear", int(row)):
                    predicted.clear_node(row)
                    truth.nodes.pop(row, None)
                case ("slot", int(slot)):
                    predicted.set_slot(slot)
                    truth.slot = slot
                case ("ask", float(cpu)):
                    predicted.profile(pod_of(None, "asked", cpu=cpu), UNKNOWN, 1.0)
        expected = truth.built()
        n = predicted.load.n_nodes
        expected._ensure(max(n, 1) - 1)
        for row in range(n):
            in_expected = row < expected.load.n_nodes
            found = predicted.load.share(np.array([row]))[0]
            share = expected.load.share(np.array([row]))[0] if in_expected else np.zeros_like(found)
            np.testing.assert_allclose(found, share, atol=1e-4)
            assert predicted.name_of(row) == expected.name_of(row)
            for mine, anew in (
                (predicted._pods_today, expected._pods_today),
                (predicted._qos_memory, expected._qos_memory),
                (predicted._base_today[:, :, truth.slot], expected._base_today[:, :, truth.slot]),
            ):
                np.testing.assert_allclose(mine[row], anew[row], rtol=1e-5, atol=1e-4)
        assert predicted.unknown_pods == expected.unknown_pods
        assert predicted.placed.keys() == expected.placed.keys()


def test_a_pod_leaves_nothing_behind_however_large_it_was() -> None:
    predicted = cluster()
    predicted.set_node(0, "node-0", FULL)
    before = curve(predicted, 0)
    for number in range(6):
        requests = {"cpu": 0.1 + number, "memory": 0.3 * 10.0 ** (3 * number)}
        predicted.place(pod_of(None, f"p{number}", cpu=requests["cpu"], memory=requests["memory"]), UNKNOWN, 0, 1.0, 1)
    for number in reversed(range(6)):  # what is small was lost beside what is large
        predicted.remove(f"uid-p{number}")
    np.testing.assert_array_equal(curve(predicted, 0), before)
    assert not predicted.qos_memory.any()
    predicted = cluster()
    predicted.set_node(0, "node-0", FULL)
    predicted.place(pod_of(0, "a"), service(0), 0, 1.0, 4.0)
    before = curve(predicted, 0)
    predicted.place(pod_of(None, "huge", cpu=1e29, memory=1e29), UNKNOWN, 0, 1.0, 1.0)
    assert np.isfinite(curve(predicted, 0)).all()
    predicted.remove("uid-huge")
    asked = predicted.profile(pod_of(None, "asked", cpu=1e29), UNKNOWN, 1.0)
    assert np.isfinite(predicted.load.growth(asked)).all()
    assert np.isfinite(predicted.load.power_growth(asked, np.array([0]))).all()  # without an overflow
    np.testing.assert_allclose(curve(predicted, 0), before, rtol=1e-5)


def test_a_pod_weighs_what_the_model_says_in_base_units_and_now_what_this_half_hour_says() -> None:
    predicted = cluster(20.0)
    predicted.set_node(0, "node-0", FULL)
    base = curve(predicted, 0)
    predicted.place(pod_of(5, "a"), service(5), 0, 1.0, 4.0)
    days = predicted.horizon.days
    placement = PROFILES.model.placement_curves(days)[0][5, :, 0].reshape(5, -1)
    np.testing.assert_allclose(curve(predicted, 0) - base, placement, rtol=1e-3, atol=1e-3)
    usage = PROFILES.model.usage_on_node(days)[5, :, 0, 40]
    np.testing.assert_allclose(predicted.pods_now()[0], usage, rtol=1e-5)
    assert usage[CPU] > 3  # six cores at 20:00
    predicted.set_slot(8)
    assert predicted.pods_now()[0, CPU] < 1.5
    np.testing.assert_allclose(predicted.base_now()[0], 0.5, atol=0.2)


def test_more_replicas_lower_the_load_of_each_pod_but_not_its_memory_nor_where_it_is_autoscaled() -> None:
    predicted = cluster()
    predicted.set_node(0, "node-0", FULL)
    base = curve(predicted, 0)
    predicted.place(pod_of(0, "a"), service(0), 0, 1.0, 4.0)
    of_four, now_of_four = curve(predicted, 0) - base, predicted.pods_now()[0]
    predicted.set_replicas(service(0), 8.0)
    of_eight, now_of_eight = curve(predicted, 0) - base, predicted.pods_now()[0]
    others = [r for r in range(5) if r != MEMORY]
    cost = PROFILES.model.per_pod_cost.max()
    np.testing.assert_allclose(of_eight[others], of_four[others] / 2, atol=1e-4 + cost)
    np.testing.assert_allclose(of_eight[MEMORY], of_four[MEMORY], atol=1e-4)
    np.testing.assert_allclose(now_of_eight[others], now_of_four[others] / 2, atol=1e-4 + cost)
    np.testing.assert_allclose(now_of_eight[MEMORY], now_of_four[MEMORY], atol=1e-4)
    predicted = cluster()
    predicted.set_node(0, "node-0", FULL)
    predicted.place(pod_of(2, "a"), service(2), 0, 1.0, 4.0)
    before = curve(predicted, 0)
    predicted.set_replicas(service(2), 40.0)
    np.testing.assert_array_equal(curve(predicted, 0), before)


def test_pods_that_do_not_count_and_unknown_services_are_there_at_their_requests() -> None:
    predicted = cluster()
    predicted.set_node(0, "node-0", FULL)
    before = curve(predicted, 0)
    predicted.place(pod_of(0, "a", terminating=True), service(0), 0, 0.0, 4.0)
    np.testing.assert_array_equal(curve(predicted, 0), before)
    assert predicted.pods_now()[0, CPU] > 0
    predicted.place(pod_of(None, "agent"), DAEMON, 0, 0.0, 1.0)  # already in the node's base
    now = predicted.pods_now()
    predicted.remove("uid-agent")
    np.testing.assert_array_equal(predicted.pods_now(), now)
    assert predicted.unknown_pods == 0
    predicted = cluster()
    predicted.set_node(0, "node-0", FULL)
    predicted.place(pod_of(None, "a", cpu=1.0, memory=2.0), UNKNOWN, 0, 1.0, 1.0)
    expected = PROFILES.mean_from_requests(1.0, 2.0, predicted.horizon.days[:1])[:, predicted.horizon.slot]
    np.testing.assert_allclose(predicted.pods_now()[0], expected, rtol=1e-6)
    assert predicted.unknown_pods == 1
    same = predicted.profile(pod_of(None, "b", cpu=1.0, memory=2.0), ServiceKey("x", "Job", "y"), 9.0)
    assert same == predicted.placed["uid-a"].profile
    predicted.place(pod_of(None, "a", cpu=3.0, memory=2.0), UNKNOWN, 0, 1.0, 1.0)  # resized in place
    np.testing.assert_allclose(predicted.pods_now()[0, CPU], 3 * expected[CPU], rtol=1e-3)
    assert predicted.unknown_pods == 1


def test_idle_profiles_are_bounded_and_profiles_of_pods_are_not_given_away(monkeypatch: pytest.MonkeyPatch) -> None:
    predicted = cluster()
    predicted.set_node(0, "node-0", FULL)
    predicted.place(pod_of(None, "a", cpu=7.0), UNKNOWN, 0, 1.0, 1.0)
    predicted.place(pod_of(0, "b"), service(0), 0, 1.0, 4.0)
    before, mine = curve(predicted, 0), predicted.placed["uid-a"].profile
    favourite = pod_of(None, "asked", cpu=0.01)
    kept = predicted.profile(favourite, UNKNOWN, 1.0)
    for number in range(600):
        asked = pod_of(None, "asked", cpu=10.0 + number / 100)
        profile = predicted.profile(asked, UNKNOWN, 1.0)
        assert predicted.keys[profile].cpu_cores == 10.0 + number / 100
        assert predicted.profile(favourite, UNKNOWN, 1.0) == kept  # what is asked for again and again is kept
    assert len(predicted.keys) <= 514
    assert predicted.placed["uid-a"].profile == mine
    assert predicted.keys[mine].cpu_cores == 7.0
    np.testing.assert_array_equal(curve(predicted, 0), before)
    monkeypatch.setattr("cluster.predicted.predicted_cluster._MOST_IDLE_PROFILES", 1)
    predicted = cluster()
    known = [service(i) for i in range(6)]
    predicted.add_services(known, dict.fromkeys(known, 4.0))
    assert len(predicted.keys) == 6
    predicted.place(pod_of(None, "a"), UNKNOWN, 0, 1.0, 1.0)
    for number, key in enumerate(known):
        predicted.place(pod_of(number, f"p{number}"), key, 0, 1.0, 4.0)
    assert len(predicted.keys) == 7
    assert [key.service for key in predicted.keys] == [*known, None]
