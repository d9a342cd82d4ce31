from __future__ import annotations

from dataclasses import replace

import numpy as np

from autoscaling.autoscale_settings import CapacityOptions
from autoscaling.capacity.failure import NodeLoss
from autoscaling.capacity.node_cost import GroupPrices, recorded_nodes
from autoscaling.capacity.node_pool import RecordedPool, node_groups, try_nodes
from autoscaling.capacity.nodes_needed import Capacity, capacity
from autoscaling.prices.given_prices import GivenPrices
from autoscaling.prices.node_prices import price_nodes
from forecast.resources import MEMORY
from scorer.replay.recording import Recording
from testing.constants import with_constants
from tests.autoscaling.capacity.tiny_prepared import N_SLOTS, by_day, prepared_of, steady

COOL = CapacityOptions(target=0.0)


def test_the_number_is_that_of_the_replay_of_so_many_nodes() -> None:
    prepared = steady([1.0, 2.0, 3.0, 4.0] * 5, n_nodes=9)
    found = capacity(prepared, CapacityOptions(target=0.1), seed=3)
    pool = RecordedPool(node_groups(prepared.recording))
    for rule, figures in found.rules.items():
        assert figures.nodes is not None and figures.trial is not None
        trial = try_nodes(prepared, pool, rule, figures.nodes, 3)
        assert trial == figures.trial
        assert trial.hot_share <= 0.1
        assert try_nodes(prepared, pool, rule, figures.nodes - 1, 3).hot_share > 0.1


def test_pods_whose_peaks_differ_share_a_node_by_curves_and_not_by_requests() -> None:
    hours = np.arange(N_SLOTS)
    morning, evening = np.where(hours < 24, 7.0, 1.0), np.where(hours < 24, 1.0, 7.0)
    found = capacity(by_day(np.stack([morning, evening] * 6), n_nodes=12), COOL)
    nodes = {rule: figures.nodes for rule, figures in found.rules.items()}
    assert nodes["oracle"] == nodes["forecast"] == 6
    assert nodes["native"] is not None and nodes["native"] > 6


def test_by_requests_all_requests_fit_and_by_curves_it_is_said_how_many_do_not() -> None:
    found = capacity(steady([1.0] * 12, n_nodes=6, requests=5.0), COOL)
    assert found.rules["native"].nodes == 6
    ours = found.rules["forecast"]
    assert ours.nodes == 2 and ours.within_requests == 6
    assert ours.trial is not None and ours.trial.unplaced == 12 - 2 * 2


def test_memory_over_capacity_is_never_saved_nodes() -> None:
    prepared = steady([0.1] * 10, n_nodes=5)
    load = prepared.recording.load.copy()
    load[:, MEMORY] = 45.0  # of 100 on a node
    found = capacity(prepared_of(replace(prepared.recording, load=load)), COOL)
    assert {figures.nodes for figures in found.rules.values()} == {5}


def test_a_pod_that_is_hot_by_itself_has_no_number() -> None:
    found = capacity(steady([9.0, 9.0], n_nodes=2), with_constants(COOL, most=3))
    assert all(figures.nodes is None for figures in found.rules.values())
    assert found.by_hour is None
    assert found.to_json()["nodes"]["forecast"] is None


def test_the_reserve_holds_the_busiest_hour_with_what_remains() -> None:
    prepared = steady([4.0] * 12, n_nodes=6)
    two = capacity(prepared, COOL, rules=("oracle",), failure=NodeLoss(nodes=2))
    assert two.rules["oracle"].reserve == 8
    zone = capacity(prepared, COOL, rules=("oracle",), failure=NodeLoss(zones=3))
    assert zone.rules["oracle"].reserve == 9
    assert zone.to_json()["reserve"]["nodes"] == {"oracle": 9}


def large_and_small() -> Capacity:
    prepared = steady([4.0] * 8, n_nodes=4)
    capacity_of = prepared.recording.capacity.copy()
    capacity_of[0] *= 2
    recording = replace(prepared.recording, capacity=capacity_of, allocatable=capacity_of[:, :2].copy())
    return capacity(
        prepared_of(recording), COOL, rules=("forecast", "oracle"), prices=priced(recording, 1.0, 1.5), cheapest=True
    )


def priced(recording: Recording, small: float, large: float | None) -> GroupPrices:
    """large: None = such nodes have no price"""
    given = {"10 cores, 9.31e-08 GiB": small} | ({} if large is None else {"20 cores, 1.86e-07 GiB": large})
    names = [f"n{row}" for row in range(recording.n_nodes)]
    nodes = recorded_nodes(names, recording)
    return GroupPrices.of(price_nodes(nodes, [GivenPrices(given, "settings")], "EUR"))


def test_with_prices_the_cheapest_of_the_proportion_and_each_group_alone_is_chosen() -> None:
    found = large_and_small()
    ours = found.rules["forecast"]
    assert dict(ours.mix) == {"20 cores, 1.86e-07 GiB": 2}
    assert ours.nodes == 2 and ours.cost == 3.0 * 730
    money = found.to_json()["money"]
    assert money["recorded_per_month"] == money["per_month"] == 4.5 * 730
    assert money["saved_per_month"] == {"forecast": 1.5 * 730, "oracle": 1.5 * 730}
    assert money["cost_per_month"]["forecast"] + money["saved_per_month"]["forecast"] == money["recorded_per_month"]


def test_where_a_group_has_no_price_the_proportion_stays_and_nothing_is_said_to_be_saved() -> None:
    whole = large_and_small()
    prices = priced(whole.prepared.recording, 1.0, None)
    found = capacity(whole.prepared, COOL, rules=("forecast",), prices=prices, cheapest=True)
    assert len(found.rules["forecast"].mix) == 2
    money = found.to_json()["money"]
    assert (money["nodes_with_price"], money["nodes_without_price"]) == (3, 1)
    assert money["cost_per_month"] == money["saved_per_month"] == {"forecast": None}
    assert money["recorded_per_month"] is None and money["per_month"] == 3 * 730


def test_prices_alone_do_not_change_which_nodes_are_searched() -> None:
    whole = large_and_small()
    found = capacity(whole.prepared, COOL, rules=("forecast",), prices=priced(whole.prepared.recording, 1.0, 1.5))
    assert len(found.rules["forecast"].mix) == 2


def test_a_number_of_nodes_costs_the_sum_of_its_groups() -> None:
    prices = priced(large_and_small().prepared.recording, 1.0, 1.5)
    small, large = prices.per_hour
    whole, parts = prices.per_month({small: 3, large: 2}), (prices.per_month({small: 3}), prices.per_month({large: 2}))
    assert None not in parts and whole == sum(part or 0.0 for part in parts)
    assert prices.per_month({}) is None and prices.per_month({"other": 1}) is None
