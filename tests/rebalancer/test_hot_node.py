"""The relief of one hot node: the fewest moves, each to the node where the pod lands, and why the others stay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from base.errors import InputError, UnknownName
from forecast.hot_share import HOT_SHARE
from forecast.resources import CPU, RESOURCES
from forecast.service_key import Owner
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo, ReplicaSetInfo
from rebalancer.hot_node import HotNodeRelief, ReliefMaker, Rollout
from tests.rebalancer.hot_cluster import hot_cluster, maker_of, plan_sources, pods_on_the_first_node, ready
from tests.scorer.live_cluster import at, pod_of
from tests.scorer.scorer_at import LiveScorer


def _relief(
    tested: LiveScorer,
    lands: Callable[[PodInfo], str] = lambda pod: "node-1",
    *,
    most: int = 10,
    gone: float = 0.0,
) -> HotNodeRelief:
    used = np.zeros(len(RESOURCES))
    used[CPU] = gone
    maker = maker_of(tested, plan_sources())
    return ReliefMaker(tested.scorer.tables, maker, HOT_SHARE, lands, most).relieve("node-0", used)


def _pods(tested: LiveScorer) -> dict[str, str]:
    with tested.scorer.tables.reading() as cluster:
        return {pod.name: pod.node for pod in cluster.state.pods.values()}


def test_the_fewest_moves_bring_the_node_under_the_hot_share_and_nothing_is_changed() -> None:
    tested = hot_cluster(size=16.0)
    before = _pods(tested)
    relief = _relief(tested)
    assert relief.is_hot and relief.is_enough and relief.peak is not None
    shares = [one.here.share for one in relief.moves if one.here is not None and one.here.share is not None]
    assert len(shares) == len(relief.moves) > 1 and shares == sorted(shares, reverse=True)
    assert shares[-1] <= HOT_SHARE < shares[-2]  # one move less is not enough
    assert {one.target for one in relief.moves} == {"node-1"} and _pods(tested) == before
    assert len({one.pod.uid for one in relief.moves}) == len(relief.moves)
    assert {why for _, why in relief.stays} == {"it need not move"}
    again = _relief(tested)
    assert [one.pod.name for one in again.moves] == [one.pod.name for one in relief.moves]


def test_the_effect_is_what_comes_of_the_moves() -> None:
    tested = hot_cluster(size=16.0)
    relief = _relief(tested)
    for move in relief.moves:
        tested.put(replace(move.pod, node=move.target))
    moved = _relief(tested)
    last = relief.moves[-1].here
    assert not moved.is_hot and moved.peak is not None and last is not None and moved.moves == ()
    assert moved.peak.share == pytest.approx(last.share, rel=1e-5)


def test_at_most_so_many_pods_move_and_where_none_helps_it_says_why() -> None:
    tested = hot_cluster(size=16.0)
    one = _relief(tested, most=1)
    assert len(one.moves) == 1 and not one.is_enough and one.is_cut
    assert {why for _, why in one.stays} == {"it is not among the moves that were asked for"}
    nowhere = _relief(tested, lambda pod: "")
    assert nowhere.moves == () and nowhere.is_hot and not nowhere.is_enough and not nowhere.is_cut
    assert {why for _, why in nowhere.stays} == {"no other node passes the filters"}


def test_pods_that_may_not_move_are_named_with_their_reason() -> None:
    daemon = replace(ready(pod_of(None, "agent", "node-0")), owner=pod_of(None, "x", "").owner)
    never = [
        replace(pod, annotations={"forecast-scheduler.io/rebalance": "never"}) if pod.name.startswith("3-") else pod
        for pod in pods_on_the_first_node()
    ]
    relief = _relief(hot_cluster(size=16.0, pods=[*never, daemon]))
    stays = dict(relief.stays)
    assert "annotation forecast-scheduler.io/rebalance: never" in stays["shop/3-0-node-0"]
    assert "shop/agent" in stays and stays["shop/agent"] != "it need not move"
    assert not any(one.pod.name.startswith("3-") for one in relief.moves)


def test_a_node_that_is_measured_hot_is_relieved_though_no_peak_is_expected() -> None:
    tested = hot_cluster(size=40.0)
    assert not _relief(tested).is_hot
    usage = np.zeros(len(RESOURCES))
    usage[CPU] = 36.0
    tested.measure({"node-0": usage})
    relief = _relief(tested)
    assert relief.is_hot and relief.measured == pytest.approx(0.9) and relief.moves
    first = relief.moves[0].measured
    assert first is not None and relief.measured is not None and first < relief.measured
    # What pods used that have just left is measured for a while.
    assert _relief(tested, gone=18.0).measured == pytest.approx(0.45)


def test_a_rollout_onto_the_node_and_pods_that_are_coming_are_named() -> None:
    tested = hot_cluster(size=16.0)
    coming = replace(pod_of(1, "coming", ""), nominated_node="node-0")
    tested.put(coming)
    assert _relief(tested).coming == ("shop/coming",) and _relief(tested).rollouts == ()
    owner = Owner("Deployment", "service-0")
    old, new = (
        ReplicaSetInfo(f"set-{number}", "shop", f"service-0-{number}", owner, number, 3, at(3.0) - 60.0 * (3 - number))
        for number in (1, 2)
    )
    tested.scorer.tables.replace(Kind.REPLICA_SETS, [old, new])
    for name, of, node in (("0-0-node-0", new, "node-0"), ("0-1-node-0", new, "node-0"), ("0-0-node-3", old, "node-3")):
        pod = next(one for one in pods_on_the_first_node() if one.name == name)
        tested.put(replace(pod, owner=Owner("ReplicaSet", of.name), owner_uid=of.uid, node=node))
    assert _relief(tested).rollouts == (Rollout("shop", "service-0", new_here=2, old_pods=1),)


def test_an_unknown_node_and_a_missing_forecast_are_one_sentence() -> None:
    tested = hot_cluster(size=16.0)
    maker = ReliefMaker(tested.scorer.tables, maker_of(tested), HOT_SHARE, lambda pod: "", 1)
    with pytest.raises(UnknownName, match="node-9"):
        maker.relieve("node-9")
    bare = LiveScorer(hour=3.0, pods=[ready(pod_of(1, "a", "node-0"))], without_model=True)
    with pytest.raises(InputError, match="forecast-scheduler train"):
        ReliefMaker(bare.scorer.tables, maker_of(bare), HOT_SHARE, lambda pod: "", 1).relieve("node-0")


def test_what_pods_use_beyond_their_forecast_goes_with_them() -> None:
    tested = hot_cluster(size=40.0)
    usage = np.zeros(len(RESOURCES))
    usage[CPU] = 36.0
    tested.measure({"node-0": usage, "node-1": np.zeros(len(RESOURCES))})
    as_expected = _relief(tested)
    tested.usage.of_pods = {("shop", pod.name): 3.0 for pod in pods_on_the_first_node() if pod.node == "node-0"}
    known = _relief(tested)
    assert known.moves and all(one.used[CPU] == pytest.approx(3.0) for one in known.moves)
    assert known.moves[0].measured == pytest.approx((36.0 - 3.0) / 40.0)
    assert len(known.moves) < len(as_expected.moves)  # each takes more away than its forecast
    there, there_expected = known.moves[0].there, as_expected.moves[0].there
    assert there is not None and there_expected is not None and there.expected > there_expected.expected


def test_a_pod_that_came_after_what_is_measured_takes_nothing_of_it_away() -> None:
    tested = hot_cluster(size=16.0)
    usage = np.zeros(len(RESOURCES))
    usage[CPU] = 15.0
    tested.measure({"node-0": usage, "node-1": np.zeros(len(RESOURCES))})
    first = _relief(tested).moves[0]
    others = [pod for pod in pods_on_the_first_node() if pod.node == "node-0" and pod.name != first.pod.name]
    tested.usage.of_pods = {("shop", pod.name): 0.5 for pod in others}
    late = next(one for one in _relief(tested).moves if one.pod.name == first.pod.name)
    assert late.used[CPU] == 0.0 < first.used[CPU]
