"""Units: wrong ones are told, healthy and idle clusters never."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.arrays import Floats
from base.errors import InputError
from forecast.resources import CPU, MEMORY, RESOURCES
from trainer.prometheus.day_consistency import check_units

GIB = 2.0**30


def _cluster(n_nodes: int = 5, cpu: float = 4.0, memory: float = 20 * GIB) -> tuple[Floats, Floats, Floats, Floats]:
    """node usage, capacity, sums of pods, memory of pods."""
    usage = np.full((n_nodes, len(RESOURCES)), np.nan)
    usage[:, CPU], usage[:, MEMORY] = cpu, memory
    capacity = np.full_like(usage, np.nan)
    capacity[:, CPU], capacity[:, MEMORY] = 16, 64 * GIB
    return usage, capacity, usage * 0.8, np.full(30, memory / 40)


@given(
    st.integers(0, 40),
    st.floats(0, 16),
    st.floats(0.3 * GIB, 64 * GIB),
    st.floats(0, 1.2),
    st.floats(0, 1.2),
    st.floats(1e6, 60 * GIB),
)
def test_no_healthy_or_idle_cluster_trips(
    n_nodes: int, cpu: float, memory: float, cpu_share: float, memory_share: float, pod_memory: float
) -> None:
    usage, capacity, sums, pods = _cluster(n_nodes, cpu, memory)
    sums[:, CPU], sums[:, MEMORY] = cpu * cpu_share, memory * memory_share
    check_units(usage, capacity, sums, np.full_like(pods, pod_memory))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda u, c, s, p: u.__setitem__((slice(None), CPU), 4000), r"node_cpu returns 250 times.*in cores"),
        (
            lambda u, c, s, p: u.__setitem__((slice(None), MEMORY), 20 * 1024.0),
            r"node_memory returns 20,480 at the med",
        ),
        (lambda u, c, s, p: p.__setitem__(slice(None), 300.0), r"pod_memory returns 300 at the median.*in bytes"),
        (lambda u, c, s, p: c.__setitem__((slice(None), CPU), 16_000), r"node_capacity returns 16,000 cores"),
        (lambda u, c, s, p: s.__setitem__((slice(None), CPU), 3200), r"pod_cpu adds up to 800 times what node_cpu"),
    ],
)
def test_wrong_units_are_told(change, message: str) -> None:  # type: ignore[no-untyped-def]
    usage, capacity, sums, pods = _cluster()
    change(usage, capacity, sums, pods)
    with pytest.raises(InputError, match=message):
        check_units(usage, capacity, sums, pods)


def test_one_broken_node_is_no_unit() -> None:
    usage, capacity, sums, pods = _cluster()
    usage[0, CPU] = 1e6
    sums[1, CPU] = 1e6
    check_units(usage, capacity, sums, pods)


def test_two_nodes_are_too_few_to_judge() -> None:
    usage, capacity, sums, pods = _cluster(2)
    usage[:, CPU] = 1e6
    check_units(usage, capacity, sums, pods)
