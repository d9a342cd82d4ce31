"""The largest node is the one that a look at all of them finds, whatever happened before."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cluster.predicted.pod_bounds import PodBounds
from forecast.usage_limits import largest_node

SOME = st.one_of(st.just(np.nan), st.sampled_from([1.0, 2.0, 3.0]))
STEPS = st.lists(st.tuples(st.integers(0, 3), st.one_of(st.none(), st.tuples(*[SOME] * 5))), max_size=12)


@given(STEPS)
def test_bounds_follow_nodes_that_come_change_and_go(steps: list[tuple[int, tuple[float, ...] | None]]) -> None:
    bounds, nodes = PodBounds(), dict[int, tuple[float, ...]]()
    for row, capacity in steps:
        if capacity is None:
            nodes.pop(row, None)
            bounds.clear(row)
        else:
            nodes[row] = capacity
            bounds.put(row, np.array(capacity))
        largest = largest_node(np.array(list(nodes.values())).reshape(-1, 5))
        assert bounds.of(None) == bounds.of(9) == tuple(largest.tolist())
        for there, known in nodes.items():
            assert bounds.of(there) == tuple(np.where(np.isfinite(known), known, largest).tolist())
