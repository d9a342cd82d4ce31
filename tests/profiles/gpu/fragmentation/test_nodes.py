"""Nodes of one state are found together, and only these."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiles.gpu.fragmentation.idle_of_nodes import NodeStates
from tests.profiles.gpu.fragmentation import cases
from tests.profiles.gpu.fragmentation.cases import Row


def as_tuples(nodes: NodeStates) -> list[tuple[object, ...]]:
    columns = (nodes.cpu_free, nodes.memory_free, nodes.model, nodes.cpu_total, nodes.memory_total, nodes.n_devices)
    return list(zip(*(column.tolist() for column in columns), map(tuple, nodes.free_milli.tolist()), strict=True))


@given(kinds=cases.nodes, order=st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_each_node_has_the_state_that_stands_for_it(kinds: list[Row], order: list[int]) -> None:
    nodes = cases.node_states([kinds[at % len(kinds)] for at in order])
    first, state = nodes.distinct()
    found = as_tuples(nodes.take(first))
    assert len(set(found)) == len(found)
    assert [found[at] for at in state.tolist()] == as_tuples(nodes)


def test_states_of_one_sum_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoFactors:
        def integers(self, low: int, high: int, size: int) -> object:
            return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(np.random, "default_rng", lambda seed: NoFactors())
    nodes = cases.node_states([(1000, 1024, 0, [500]), (2000, 1024, 0, [500])])
    first, state = nodes.distinct()
    assert (first.tolist(), state.tolist()) == ([0, 1], [0, 1])
