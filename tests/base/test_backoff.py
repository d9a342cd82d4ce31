"""Pauses after failures in a row."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.backoff import Backoff


@pytest.mark.parametrize(("failures", "seconds"), [(0, 0), (1, 1), (2, 2), (4, 8), (5, 10), (10_000, 10)])
def test_pauses_double_up_to_the_longest(failures: int, seconds: float) -> None:
    assert Backoff(1.0, 10.0).seconds(failures) == seconds


@given(st.integers(1, 10_000), st.integers(0, 1000))
def test_pauses_stay_between_half_the_first_and_the_longest(failures: int, seed: int) -> None:
    seconds = Backoff(first=0.2, longest=30).seconds(failures, random.Random(seed))
    assert 0.1 <= seconds <= 30
    assert seconds >= min(30, 0.2 * 2 ** min(failures - 1, 60)) / 2
