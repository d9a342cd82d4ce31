"""The guard keeps as many nodes as the coming hours need, and none in the valley."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.autoscale_settings import GuardOptions
from autoscaling.nodes.guard import GuardedNodes, highest_need, marks_for
from testing.constants import with_constants
from tests.autoscaling.nodes.made_up import GIB, at, nodes_with, ramp, services_ahead

OPTIONS = with_constants(GuardOptions(), margin=0.0, fill=1.0, slack=0.0, most_share=1.0)


def need(cores: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([cores, 0.0])


def test_the_fullest_nodes_are_kept_until_they_hold_the_need() -> None:
    assert marks_for(need(25), nodes_with([2, 8, 5, 6]), OPTIONS).keep == ("n1", "n2", "n3")


def test_nothing_is_kept_where_the_coming_hours_need_no_more_than_runs() -> None:
    assert marks_for(need(21), nodes_with([2, 8, 5, 6]), OPTIONS).keep == ()


def test_with_always_marks_follow_the_need_down() -> None:
    options = OPTIONS.replace(always=True)
    assert marks_for(need(21), nodes_with([2, 8, 5, 6]), options).keep == ("n1", "n2", "n3")
    assert marks_for(need(15), nodes_with([2, 8, 5], until=[at(9)] * 3), options).keep == ("n1", "n2")


def test_nodes_that_others_keep_hold_their_share_and_are_never_marked() -> None:
    nodes = nodes_with([2, 8, 5, 6])
    assert marks_for(need(25), nodes, OPTIONS, foreign={"n0"}).keep == ("n1", "n3")
    assert marks_for(need(40), nodes, OPTIONS, foreign={"n1"}).keep == ("n0", "n2", "n3")


def test_nodes_that_are_marked_stay_marked_when_others_are_fuller_now() -> None:
    nodes = nodes_with([9, 1, 8, 2], until=[0, at(12), 0, at(12)])
    assert marks_for(need(25), nodes, OPTIONS).keep == ("n0", "n1", "n3")


def test_marks_come_and_go_at_different_needs() -> None:
    options = with_constants(OPTIONS, slack=0.1)
    free, held = nodes_with([5, 5, 5]), nodes_with([5, 5, 5], until=[at(9)] * 3)
    assert marks_for(need(16), free, options).keep == ()  # less than 10 % above what runs
    assert marks_for(need(17), free, options).keep == ("n0", "n1")
    assert marks_for(need(16), held, options).keep == ("n0", "n1")
    assert marks_for(need(19), held, options).keep == ("n0", "n1", "n2")  # two hold it, but not 10 % more
    assert marks_for(need(15), held, options).keep == ()


def test_the_need_is_the_highest_of_the_horizon_and_counts_all_other_pods() -> None:
    ahead = services_ahead([10, 4], [ramp(10, 30), 4], autoscaled=[True, False])
    nodes = nodes_with([10, 10])  # 6 cores of pods that the model does not know
    assert highest_need(ahead, nodes, at(2), OPTIONS).tolist() == [20, 20 * GIB]
    assert highest_need(ahead, nodes, at(7), OPTIONS).tolist() == [40, 40 * GIB]
    assert highest_need(ahead, nodes, at(7), with_constants(OPTIONS, horizon=2 * 3600))[0] < 35
    unsure = services_ahead([10], [ramp(10, 30)], error=0.1)
    assert highest_need(unsure, nodes_with([10]), at(7), with_constants(OPTIONS, margin=2.0))[0] == 30 * 1.2


@st.composite
def _nodes(draw: st.DrawFn) -> GuardedNodes:
    n = draw(st.integers(0, 8))
    columns: dict[str, Any] = {
        "usable": draw(st.lists(st.booleans(), min_size=n, max_size=n)),
        "until": draw(st.lists(st.sampled_from([0.0, at(9)]), min_size=n, max_size=n)),
    }
    return nodes_with(draw(st.lists(st.floats(0, 10), min_size=n, max_size=n)), **columns)


@given(_nodes(), st.floats(0, 120), st.sets(st.sampled_from([f"n{i}" for i in range(8)])), st.floats(0.1, 1))
def test_bounds_hold_for_any_nodes_and_need_and_marks_settle_at_once(
    nodes: GuardedNodes, cores: float, foreign: set[str], most_share: float
) -> None:
    options = with_constants(OPTIONS, most_share=most_share, slack=0.05)
    keep = marks_for(need(cores), nodes, options, foreign=foreign).keep
    assert len(keep) <= most_share * len(nodes.names)
    assert not set(keep) & foreign
    assert all(nodes.usable[nodes.names.index(name)] for name in keep)
    marked = replace(nodes, until=np.array([at(9) if name in keep else 0.0 for name in nodes.names]))
    if keep:
        assert marks_for(need(cores), marked, options, foreign=foreign).keep == keep
