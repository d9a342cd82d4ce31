"""What can be set about gangs, and what cannot."""

from __future__ import annotations

import math

import pytest

from forecast.errors import InputError
from scheduler.gangs.options import GangOptions


@pytest.mark.parametrize("name", ["timeout", "pause"])
@pytest.mark.parametrize("value", [-1.0, math.inf, math.nan])
def test_odd_times_are_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(InputError, match=f"^GangOptions: {name} is {value}: input should be "):
        GangOptions(**{name: value})  # type: ignore[arg-type]


def test_none_at_all_is_allowed() -> None:
    assert GangOptions(timeout=0.0, pause=0.0).pause == 0.0
