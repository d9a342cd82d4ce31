from __future__ import annotations

import numpy as np

from base.arrays import Floats32
from trainer.history.cleaning import CAPACITY_TOLERANCE, CleaningCause, Tally, clean_usage

NONE = np.empty((0, 2))


def values(*rows: tuple[float, float]) -> Floats32:
    return np.array(rows, dtype=np.float32)


def test_a_null_is_not_worth_a_remark() -> None:
    assert clean_usage(values((np.nan, 1.0), (2.0, np.nan)), 2, np.array([0, 0]), NONE) == {}


def test_zero_is_a_measurement() -> None:
    table = values((0.0, -0.0))
    assert clean_usage(table, 0, np.array([0]), np.array([[1.0, 1.0]])) == {}
    assert (table == 0).all()


def test_what_exceeds_the_own_nodes_capacity_is_not_measured() -> None:
    capacity = np.array([[4.0, np.nan], [1.0, 10.0]])
    limit = CAPACITY_TOLERANCE
    table = values((4 * limit, 1e12), (4 * limit * 1.01, 1e12), (4 * limit, 10 * limit * 1.01), (1e9, 1e9))
    counts = clean_usage(table, 0, np.array([0, 0, 1, -1]), capacity)
    # Row 0 is at the limit; row 3 is on an unknown node; a capacity of NaN is no limit.
    assert counts == {CleaningCause.ABOVE_CAPACITY: 3}
    assert np.isnan(table).tolist() == [[False, False], [True, False], [True, True], [False, False]]


def test_the_report_has_one_line_per_file_and_cause() -> None:
    tally = Tally()
    tally.add("usage.parquet", CleaningCause.NEGATIVE, 1200)
    tally.add("usage.parquet", CleaningCause.NEGATIVE, 34)
    tally.add("nodes.parquet", CleaningCause.DUPLICATE, 1)
    tally.add("nodes.parquet", CleaningCause.NOT_FINITE, 0)
    tally.set("usage.parquet", CleaningCause.STEP, 0)
    assert tally.report().lines() == [
        "nodes.parquet: 1 rows repeat a series and time: the last row counts",
        "usage.parquet: 1,234 values are negative: taken as not measured",
    ]
    assert tally.report().total(CleaningCause.NEGATIVE) == 1234
