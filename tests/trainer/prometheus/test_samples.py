"""Recorded and raw samples in one array."""

from __future__ import annotations

import numpy as np
import pytest

from base.errors import InputError
from forecast.resources import CPU, MEMORY, RESOURCES
from trainer.history.cleaning import CleaningCause, Tally
from trainer.prometheus.matrix import Matrix
from trainer.prometheus.node_names import node_names
from trainer.prometheus.samples import Samples, covered_ticks, forget_invented_zeros, place


def _matrix(node: str, values: dict[int, float]) -> Matrix:
    ticks = np.array(list(values), dtype=np.int64)
    return Matrix(({"node": node},), np.zeros(len(ticks), dtype=np.int64), ticks, np.array(list(values.values())))


def test_raw_samples_count_only_where_nothing_is_recorded() -> None:
    recorded, raw = [_matrix("n1", {0: 1.0, 1: 2.0})], [_matrix("n1", {0: 9.0, 1: 9.0, 2: 3.0, 7: 9.0})]
    covered = covered_ticks(recorded, 4)
    assert covered.tolist() == [True, True, False, False]
    out = np.full((1, 4), np.nan, dtype=np.float32)
    place(Samples(recorded, raw, ~covered, "node_cpu"), out, {"n1": 0}, node_names, "nodes.parquet", Tally())
    np.testing.assert_array_equal(out, [[1, 2, 3, np.nan]])


def test_flaws_are_counted_and_unknown_names_returned() -> None:
    tally, out = Tally(), np.full((1, 5), np.nan, dtype=np.float32)
    raw = [_matrix("n1", {0: -1.0, 1: np.nan, 2: 5.0, 3: 5.0, 4: 5.0}), _matrix("n2", {0: 1.0})]
    samples = Samples([], raw, np.ones(5, dtype=bool), "node_cpu")
    assert place(samples, out, {"n1": 0}, node_names, "nodes.parquet", tally) == {"n2"}
    np.testing.assert_array_equal(out, [[np.nan, np.nan, 5, 5, 5]])
    assert tally.report().counts == {
        ("nodes.parquet", CleaningCause.NEGATIVE): 1,
        ("nodes.parquet", CleaningCause.NOT_FINITE): 1,
    }


@pytest.mark.parametrize("broken", [np.nan, np.inf, -1.0])
def test_a_query_whose_values_are_mostly_impossible_is_to_blame(broken: float) -> None:
    raw = [_matrix("n1", {0: broken, 1: broken, 2: 5.0})]
    samples = Samples([], raw, np.ones(3, dtype=bool), "node_cpu")
    with pytest.raises(
        InputError, match=r"2 of the 3 values of query node_cpu .* correct prometheus\.queries\.node_cpu"
    ):
        place(samples, np.full((1, 3), np.nan, dtype=np.float32), {"n1": 0}, node_names, "nodes.parquet", Tally())


def test_an_address_and_a_name_of_one_node_share_its_row() -> None:
    raw = [_matrix("n1", {0: 1.0}), _matrix("10.0.0.1", {0: 4.0, 1: 5.0})]
    out = np.full((1, 2), np.nan, dtype=np.float32)
    samples = Samples([], raw, np.ones(2, dtype=bool), "node_cpu")
    place(samples, out, {"n1": 0, "10.0.0.1": 0}, node_names, "nodes.parquet", Tally())
    np.testing.assert_array_equal(out, [[4, 5]])


def test_a_rate_of_zero_without_any_memory_was_not_measured() -> None:
    usage = np.full((2, 4, len(RESOURCES)), np.nan, dtype=np.float32)
    usage[:, :, CPU] = [[1, 0, 0, 2], [0, 0, 0, 0]]
    usage[0, :, MEMORY] = [5, 5, np.nan, np.nan]  # of the second it is never measured
    forget_invented_zeros(usage)
    np.testing.assert_array_equal(usage[:, :, CPU], [[1, 0, np.nan, 2], [0, 0, 0, 0]])
    np.testing.assert_array_equal(usage[0, :, MEMORY], [5, 5, np.nan, np.nan])
