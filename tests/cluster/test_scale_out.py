"""Room for the evening's replicas of autoscaled services, and how it is shared out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cluster.scale_out import expected_scale_out, soft_load
from forecast.resources import CPU
from kube.decoding.decoding import Kind
from tests.scorer.live_cluster import at, growing, model, node, pod_of
from tests.scorer.scorer_at import LiveScorer, tables

PODS = [pod_of(5, f"p{i}", f"node-{i}", cpu=1.0, started=at(0)) for i in range(2)]


def test_replicas_that_come_take_the_place_of_the_room_that_lowered_scores() -> None:
    tested = LiveScorer(12.0, pods=PODS, model=growing())
    cordoned = replace(node("node-3"), unschedulable=True)
    pod = pod_of(4, "new")
    tested.scorer.tables.put(Kind.NODES, cordoned)
    tested.scorer.tables.put(Kind.PODS, pod_of(None, "full", "node-2", cpu=39.5, started=at(0)))
    tested.scorer.tables.share_out_scale_out()
    with_room = tested.scorer.score(pod).scores
    tested.scorer.tables.install(growing(2.0))
    without = tested.scorer.score(pod).scores
    lower = with_room < without - 1e-6
    # node-2 has no room for a pod of one core, node-3 takes none.
    assert lower.tolist() == [True, True, False, False]
    tested = LiveScorer(12.0, pods=PODS, model=growing())
    for i in range(2, 9):
        tested.put(pod_of(5, f"p{i}", f"node-{i % 4}", cpu=1.0))
    tested.scorer.tables.share_out_scale_out()
    np.testing.assert_allclose(tables(tested).load._tables.soft, 0, atol=1e-6)
    gathered = expected_scale_out(tested.scorer.tables._cluster)
    assert gathered is not None and gathered.load() is None
    assert tested.scorer.self_check().sound


def test_what_grows_is_shared_by_size_and_nobody_without_a_model() -> None:
    assert expected_scale_out(LiveScorer(pods=PODS, without_model=True).scorer.tables._cluster) is None
    assert expected_scale_out(LiveScorer(pods=PODS).scorer.tables._cluster) is None
    usage = np.ones((2, 1, 3))
    extra = np.array([[4.0, 0, 0], [1.0, 1, 0]])
    requests = np.array([[1.0, 1.0], [99.0, 1.0]])
    free = np.array([[2.0, 2.0], [2.0, 2.0], [0.5, 2.0], [9.0, 9.0]])
    size = np.array([10.0, 30.0, 20.0, 0.0])
    found = soft_load(extra, usage, requests, free, size)[:, 0]
    np.testing.assert_allclose(found[:, 0], [1 + 1 / 6, 3 + 3 / 6, 2 / 6, 0])
    np.testing.assert_allclose(found[:, 1], [1 / 6, 3 / 6, 2 / 6, 0])
    assert not found[:, 2].any()
    assert not soft_load(extra, usage, requests, free, np.zeros(4)).any()  # nobody takes pods


def test_room_that_no_node_has_presses_where_pods_declare_to_go() -> None:
    usage, extra, size = np.ones((2, 1, 1)), np.full((2, 1), 6.0), np.array([10.0, 20.0, 30.0])
    requests, free = np.array([[1.0, 1.0], [9.0, 9.0]]), np.full((3, 2), 2.0)
    usable = np.array([[True, True], [False, True], [True, False]])
    found = np.asarray(soft_load(extra, usage, requests, free, size, usable))[:, 0, 0]
    np.testing.assert_allclose(found, [6 / 4 + 6 / 3, 6 * 2 / 3, 6 * 3 / 4])
    assert not soft_load(extra, usage, requests, free, size, np.zeros((3, 2), dtype=bool)).any()
    said = {"forecast-scheduler.io/virtual-request": '{"cpu": "6"}'}
    pods = [pod_of(5, f"p{i}", f"node-{i}", cpu=1.0, started=at(0), annotations=said) for i in range(2)]
    gathered = expected_scale_out(LiveScorer(12.0, pods=pods, model=growing()).scorer.tables._cluster)
    assert gathered is not None
    cores = np.asarray(gathered.load())[:, CPU].sum(axis=0)
    assert (cores[38:42] >= 7 * 6.0 - 1e-3).all()
    assert not cores[:38].any()


def test_what_is_to_come_is_kept_free_in_its_hours_where_it_can_go() -> None:
    tested = LiveScorer(12.0, pods=PODS, model=growing())
    still = LiveScorer(12.0, pods=PODS, model=growing(2.0))
    load, before = (tables(one).load for one in (tested, still))
    extra = (load.share(slice(None)) - before.share(slice(None)))[:4, CPU] * 40.0
    of_one = tables(tested).profiles.mean(
        [tested.scorer.tables._cluster.state.services[0]], np.array([2.0]), (model().first_day,)
    )[0, CPU]
    np.testing.assert_allclose(extra[:, 38:42].sum(axis=0), 7 * of_one[38:42], rtol=1e-3)
    assert not extra[:, :38].any()
    assert not extra[:, 42:48].any()
    assert tested.scorer.self_check().sound
    pods = [pod_of(5, f"p{i}", f"node-{i}", cpu=12.0, started=at(0)) for i in range(2)]
    filling = [pod_of(None, f"full{i}", f"node-{i}", cpu=27.0, started=at(0)) for i in range(2)]
    tested = LiveScorer(12.0, pods=[*pods, *filling], model=growing(), sizes=(40.0, 40.0, 8.0, 8.0))
    gathered = expected_scale_out(tested.scorer.tables._cluster)
    assert gathered is not None
    cores = np.asarray(gathered.load())[:, CPU, 38:42].sum(axis=1)
    assert cores.tolist()[2:] == [0.0, 0.0]
    assert min(cores.tolist()[:2]) > 0


@given(data=st.data())
def test_soft_load_sums_to_what_is_expected_wherever_pods_may_go(data: st.DataObject) -> None:
    n_nodes, n = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 5))
    floats = st.floats(0, 50, allow_subnormal=False)
    extra = data.draw(arrays(float, (n, 3), elements=floats))
    usage = data.draw(arrays(np.float32, (n, 2, 3), elements=st.floats(0, 50, width=32, allow_subnormal=False)))
    requests = data.draw(arrays(float, (n, 2), elements=floats))
    free = data.draw(arrays(float, (n_nodes, 2), elements=floats))
    size = data.draw(arrays(float, n_nodes, elements=st.sampled_from([0.0, 8.0, 64.0, 1e4])))
    usable = data.draw(arrays(bool, (n_nodes, n)))
    found = soft_load(extra, usage, requests, free, size, usable)
    could = usable & (size > 0)[:, None]
    expected = (extra[:, None] * usage * np.asarray(could.any(axis=0))[:, None, None]).sum(axis=0)
    assert np.isfinite(found).all() and (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=0), expected, rtol=1e-4, atol=1e-4)
    assert not found[~could.any(axis=1)].any()
