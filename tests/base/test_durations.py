"""Durations as people write them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.setting_group import DURATION_EXAMPLES, duration_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("200ms", 0.2),
        ("30s", 30.0),
        ("5m", 300.0),
        ("1h30m", 5400.0),
        ("1d", 86_400.0),
        ("1.5h", 5400.0),
        ("0", 0.0),
        ("90", 90.0),
        ("0.25", 0.25),
        ("30m1h", 5400.0),
    ],
)
def test_seconds(text: str, seconds: float) -> None:
    assert duration_seconds(text) == pytest.approx(seconds)


NONE = "h 1w 1y -1s +1s 1e3 1.h .5h 1,5h PT1H nan inf 1H 1h30 \u0663s"


@pytest.mark.parametrize("text", [*NONE.split(), "", " ", "5 m", " 5m", "5m ", "5m\n", "9" * 400, "9" * 400 + "h"])
def test_what_is_none(text: str) -> None:
    assert duration_seconds(text) is None


def test_the_examples_are_some() -> None:
    assert all(duration_seconds(one) for one in DURATION_EXAMPLES.replace(" or ", ", ").split(", "))


@given(st.one_of(st.text(max_size=20), st.text("0123456789.msh", max_size=12)))
def test_any_text_has_an_answer(text: str) -> None:
    seconds = duration_seconds(text)
    assert seconds is None or (seconds >= 0 and math.isfinite(seconds))


@given(st.lists(st.tuples(st.integers(0, 10_000), st.sampled_from(["ms", "s", "m", "h", "d"])), min_size=1, max_size=5))
def test_parts_add_up(parts: list[tuple[int, str]]) -> None:
    whole = duration_seconds("".join(f"{number}{unit}" for number, unit in parts))
    assert whole == pytest.approx(sum(duration_seconds(f"{number}{unit}") or 0.0 for number, unit in parts))
