"""What is kept for idle GPUs: by hand, and against the slow way."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast.arrays import Ints
from scheduler.profiles.gpu.idle_cpu.gpu_reserve import PRIOR_GPUS, kept_for_idle, per_gpu

_Row = tuple[int, int, int, int, int]  # milli-cores requested, thousandths held, model, devices, allocatable

rows = st.lists(
    st.tuples(
        st.integers(0, 64_000), st.integers(0, 8000), st.integers(-1, 2), st.integers(0, 8), st.integers(0, 96_000)
    ),
    min_size=1,
    max_size=12,
)


def columns(of_rows: list[_Row]) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    whole = np.array(of_rows, dtype=np.int64)
    requested, held, model, devices, allocatable = whole.T
    held = np.minimum(held, 1000 * devices)
    return requested[:, None], held, np.where(devices > 0, model, -1), devices, allocatable[:, None]


@pytest.mark.parametrize(
    ("held", "requested", "expected"),
    [
        (0, 0, 10_000.0),  # nobody has such a card: the node's share
        (8000, 16_000, (16_000 + PRIOR_GPUS * 10_000) / (8 + PRIOR_GPUS)),
        (800_000, 1_600_000, (1_600_000 + PRIOR_GPUS * 10_000) / (800 + PRIOR_GPUS)),  # almost the 2 cores of each
    ],
)
def test_the_mean_counts_more_the_more_such_cards_are_held(held: int, requested: int, expected: float) -> None:
    """One idle node of 40 cores and 4 cards; the others of the model hold so much."""
    found = per_gpu(
        np.array([[0], [requested]]),
        np.array([0, held]),
        np.array([0, 0]),
        np.array([4, max(1, held // 1000)]),
        np.array([[40_000], [10**9]]),
        (None,),
    )
    assert found[0, 0] == pytest.approx(expected)


def test_models_do_not_mix() -> None:
    found = per_gpu(
        np.array([[640_000], [0], [0]]),
        np.array([64_000, 0, 0]),
        np.array([0, 0, 1]),
        np.array([64, 8, 8]),
        np.array([[640_000], [8000], [8000]]),
        (None,),
    )
    assert found[1, 0] > 8000 and found[2, 0] == 1000.0


@given(rows, st.one_of(st.none(), st.integers(0, 20_000)))
def test_as_node_by_node(of_rows: list[_Row], said: int | None) -> None:
    requested, held, model, devices, allocatable = columns(of_rows)
    found = per_gpu(requested, held, model, devices, allocatable, (said,))
    for row in range(len(of_rows)):
        if not devices[row]:
            expected = 0.0
        elif said is not None:
            expected = float(said)
        else:
            like = [one for one in range(len(of_rows)) if model[one] == model[row]]
            gpus = sum(held[one] for one in like) / 1000 + PRIOR_GPUS
            expected = (sum(requested[one, 0] for one in like) + PRIOR_GPUS * allocatable[row, 0] / devices[row]) / gpus
        assert found[row, 0] == pytest.approx(expected)


@given(rows)
def test_an_empty_cluster_keeps_all_of_its_nodes_and_a_full_one_nothing(of_rows: list[_Row]) -> None:
    _, _, model, devices, allocatable = columns(of_rows)
    nothing = np.zeros_like(allocatable)
    of_a_gpu = per_gpu(nothing, np.zeros_like(model), model, devices, allocatable, (None,))
    kept = kept_for_idle(1000 * devices, of_a_gpu)
    assert (kept == np.where(devices[:, None] > 0, allocatable, 0)).all()
    assert (kept_for_idle(np.zeros_like(devices), of_a_gpu) == 0).all()


@given(st.integers(0, 8000), st.floats(0, 1e12))
def test_what_is_kept_is_whole_and_rounded_up(idle: int, of_a_gpu: float) -> None:
    kept = int(kept_for_idle(np.array([idle]), np.array([[of_a_gpu]]))[0, 0])
    exact = idle * of_a_gpu / 1000
    assert kept >= math.floor(exact) and kept <= math.ceil(exact) + 1
