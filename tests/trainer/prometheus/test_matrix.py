"""Answers of Prometheus as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trainer.prometheus.http_answer import ImpossibleAnswer
from trainer.prometheus.matrix import matrix_of, vector_of


def test_samples_land_on_their_ticks() -> None:
    result = [
        {"metric": {"pod": "a"}, "values": [[1000, "1"], [1300, "2.5"], [1600, "3e-07"]]},
        {"metric": {"pod": "b"}, "values": [[700.0, "0"], [1600, "4"]]},  # a hole
    ]
    matrix = matrix_of(result, start=1000, end=1600, step_seconds=300)
    assert matrix.labels == ({"pod": "a"}, {"pod": "b"})
    assert matrix.series.tolist() == [0, 0, 0, 1, 1]
    assert matrix.tick.tolist() == [0, 1, 2, -1, 2]
    assert matrix.values.tolist() == [1, 2.5, 3e-7, 0, 4]


def test_two_samples_with_a_hole_between_are_not_taken_for_neighbours() -> None:
    matrix = matrix_of(
        [{"metric": {}, "values": [[0, "1"], [900, "2"], [1200, "3"]]}], start=0, end=1200, step_seconds=300
    )
    assert matrix.tick.tolist() == [0, 3, 4]


def test_what_is_not_finite_is_nan() -> None:
    matrix = vector_of([{"metric": {}, "value": [0, text]} for text in ("NaN", "+Inf", "-Inf", "7")])
    np.testing.assert_array_equal(matrix.values, [np.nan, np.nan, np.nan, 7])


def test_nothing_is_nothing() -> None:
    assert len(matrix_of([], start=0, end=60, step_seconds=60).values) == 0
    assert vector_of([]).labels == ()


def _series(*samples: Any, **labels: Any) -> dict[str, Any]:
    return {"metric": labels, "values": list(samples)}


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ([_series([0, None])], r"the sample \[0, None\] of the series \{\}, allowed is"),
        ([_series([0, "1"], [60, 2.5], pod="a")], r"the sample \[60, 2.5\] of the series \{'pod': 'a'\}"),
        ([_series([0, "many"])], "the sample .0, 'many'."),
        ([_series(["0", "1"])], "the sample"),
        ([_series([None, "1"])], "the sample"),
        ([_series([True, "1"])], "the sample"),
        ([_series([0, "1", "2"])], "the sample"),
        ([_series([0])], "the sample"),
        ([_series("01")], "the sample 01"),
        ([_series({"0": 0, "1": 1})], "the sample"),
        ([_series(None)], "the sample null"),
        ([_series([1e18, "1"])], r"a sample at the unix time 1e\+18"),
        ([_series([-60, "1"])], "a sample at the unix time -60"),
        ([_series([0, "1"], [6000, "2"])], "a sample at the unix time 6000, asked was for 0 to 600"),
        ([_series([60, "1"], [0, "2"])], "not in the order of time"),
        ([_series([60, "1"], [60, "2"])], "not in the order of time"),
        ([_series([0, "1"], pod=None)], r"labels \{'pod': None\}, allowed are names with texts"),
        ([_series([0, "1"], pod=["a"])], "labels"),
        ([{"values": [[0, "1"]]}], "labels null"),
        ([{"metric": "pod", "values": [[0, "1"]]}], "labels pod"),
        ([{"metric": {}}], r"a series without values \(it has \['metric'\]\)"),
        ([{"metric": {}, "value": [0, "1"]}], "a series without values"),
        ([{"metric": {}, "values": None}], "values null, allowed is a list"),
        ([{"metric": {}, "values": {"0": "1"}}], "values"),
        ([None], "null in the place of a series"),
        ([[0, "1"]], "in the place of a series"),
        (["pod"], "pod in the place of a series"),
    ],
)
def test_what_no_prometheus_answers_is_refused_in_words(result: list[Any], message: str) -> None:
    with pytest.raises(ImpossibleAnswer, match=message):
        matrix_of(result, start=0, end=600, step_seconds=60)


@pytest.mark.parametrize("value", [None, [], [0], [0, None], [0, 1], ["0", "1"], "01", [1e18, "1"], {"0": 0, "1": "1"}])
def test_an_impossible_value_of_an_instant_is_refused(value: Any) -> None:
    with pytest.raises(ImpossibleAnswer):
        vector_of([{"metric": {}, "value": [0, "7"]}, {"metric": {}, "value": value}])


def test_ends_that_a_server_moved_by_less_than_a_step_are_samples() -> None:
    matrix = matrix_of([_series([940, "1"], [1240, "2"])], start=1000, end=1200, step_seconds=300)
    assert matrix.tick.tolist() == [0, 1]
