"""Room for the evening's replicas of autoscaled services, and how it is shared out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forecast.resources import CPU
from scorer.cluster.decoding import Kind
from scorer.predicted.soft_load import soft_load
from scorer.scale_out import expected_scale_out
from tests.scorer.live_cluster import at, loaded, model, node, pod_of
from tests.scorer.scorer_at import LiveScorer


def growing(evening: float = 9.0):  # type: ignore[no-untyped-def]
    """Service 5 follows its load: two pods, and more between 19:00 and 21:00."""
    autoscaled = model().autoscaled.copy()
    autoscaled[5] = 1
    dated, day_type = model().replicas_dated.copy(), model().replicas_day_type.copy()
    for counts in (dated, day_type):
        counts[5] = 2.0
        counts[5, :, 38:42] = evening
    return loaded(replace(model(), autoscaled=autoscaled, replicas_dated=dated, replicas_day_type=day_type))


PODS = [pod_of(5, f"p{i}", f"node-{i}", cpu=1.0, started=at(0)) for i in range(2)]


def test_what_is_expected_beyond_the_replicas_there_are_is_kept_free_in_those_hours() -> None:
    tested = LiveScorer(12.0, pods=PODS, model=growing())
    still = LiveScorer(12.0, pods=PODS, model=growing(2.0))
    load, before = (one.scorer._cluster.predicted.load for one in (tested, still))  # type: ignore[union-attr]
    extra = (load.share(slice(None)) - before.share(slice(None)))[:4, CPU] * 40.0
    of_one = tested.scorer._cluster.predicted.profiles.mean(  # type: ignore[union-attr]
        [tested.scorer._cluster.state.services[0]], np.array([2.0]), (model().first_day,)
    )[0, CPU]
    np.testing.assert_allclose(extra[:, 38:42].sum(axis=0), 7 * of_one[38:42], rtol=1e-3)
    assert not extra[:, :38].any()
    assert not extra[:, 42:48].any()
    assert tested.scorer.self_check().sound


def test_headroom_lowers_the_scores_of_the_nodes_that_will_get_the_pods() -> None:
    tested = LiveScorer(12.0, pods=PODS, model=growing())
    cordoned = replace(node("node-3"), unschedulable=True)
    pod = pod_of(4, "new")
    tested.scorer.put(Kind.NODES, cordoned)
    tested.scorer.put(Kind.PODS, pod_of(None, "full", "node-2", cpu=39.5, started=at(0)))
    tested.scorer.share_out_scale_out()
    with_room = tested.scorer.score(pod).scores
    tested.scorer.install(growing(2.0))
    without = tested.scorer.score(pod).scores
    lower = with_room < without - 1e-6
    # node-2 has no room for a pod of one core, node-3 takes none.
    assert lower.tolist() == [True, True, False, False]


def test_replicas_that_come_take_the_place_of_the_room_kept_for_them() -> None:
    tested = LiveScorer(12.0, pods=PODS, model=growing())
    for i in range(2, 9):
        tested.put(pod_of(5, f"p{i}", f"node-{i % 4}", cpu=1.0))
    tested.scorer.share_out_scale_out()
    load = tested.scorer._cluster.predicted.load  # type: ignore[union-attr]
    np.testing.assert_allclose(load._tables.soft, 0, atol=1e-6)
    assert expected_scale_out(tested.scorer._cluster) is None
    assert tested.scorer.self_check().sound


def test_nobody_grows_without_a_model_or_autoscaled_services() -> None:
    assert expected_scale_out(LiveScorer(pods=PODS, without_model=True).scorer._cluster) is None
    assert expected_scale_out(LiveScorer(pods=PODS).scorer._cluster) is None


def test_a_pod_is_shared_by_size_among_nodes_with_room_or_else_among_all() -> None:
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
