from __future__ import annotations

from typing import Any

import pytest

from forecast.errors import InputError
from scheduler.queue.backoff import backoff_seconds
from scheduler.queue.options import QueueOptions


def test_defaults_are_those_of_kube_scheduler() -> None:
    options = QueueOptions()
    assert (options.backoff.initial, options.backoff.longest, options.unschedulable_flush) == (1.0, 10.0, 300.0)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"backoff": {"initial": -1.0}}, "backoff.initial is -1.0"),
        ({"backoff": {"initial": float("nan")}}, "backoff.initial is nan"),
        ({"backoff": {"longest": 0.5}}, "longest must be at least initial"),
        ({"backoff": {"longest": float("inf")}}, "backoff.longest is inf"),
        ({"unschedulable_flush": 0.0}, "unschedulable_flush"),
        ({"most_events": 0}, "most_events"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        QueueOptions(**wrong)


@pytest.mark.parametrize(("attempts", "seconds"), [(0, 0), (1, 1), (2, 2), (4, 8), (5, 10), (10_000, 10)])
def test_backoff(attempts: int, seconds: float) -> None:
    assert backoff_seconds(attempts, initial=1.0, longest=10.0) == seconds
