"""Answers of Prometheus as arrays."""

from __future__ import annotations

import numpy as np

from trainer.prometheus.matrix import matrix_of, vector_of


def test_samples_land_on_their_ticks() -> None:
    result = [
        {"metric": {"pod": "a"}, "values": [[1000, "1"], [1300, "2.5"], [1600, "3e-07"]]},
        {"metric": {"pod": "b"}, "values": [[700.0, "0"], [1600, "4"]]},  # a hole
    ]
    matrix = matrix_of(result, origin=1000, step_seconds=300)
    assert matrix.labels == ({"pod": "a"}, {"pod": "b"})
    assert matrix.series.tolist() == [0, 0, 0, 1, 1]
    assert matrix.tick.tolist() == [0, 1, 2, -1, 2]
    assert matrix.values.tolist() == [1, 2.5, 3e-7, 0, 4]


def test_two_samples_with_a_hole_between_are_not_taken_for_neighbours() -> None:
    matrix = matrix_of([{"metric": {}, "values": [[0, "1"], [900, "2"], [1200, "3"]]}], origin=0, step_seconds=300)
    assert matrix.tick.tolist() == [0, 3, 4]


def test_what_is_not_finite_is_nan() -> None:
    matrix = vector_of([{"metric": {}, "value": [0, text]} for text in ("NaN", "+Inf", "-Inf", "7")])
    np.testing.assert_array_equal(matrix.values, [np.nan, np.nan, np.nan, 7])


def test_nothing_is_nothing() -> None:
    assert len(matrix_of([], origin=0, step_seconds=60).values) == 0
    assert vector_of([]).labels == ()
