from __future__ import annotations

import pytest

from forecast.errors import InputError
from scheduler.queue.backoff import backoff_seconds
from scheduler.queue.options import QueueOptions


def test_defaults_are_those_of_kube_scheduler() -> None:
    options = QueueOptions()
    assert (options.initial_backoff, options.longest_backoff, options.longest_unschedulable) == (1.0, 10.0, 300.0)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"initial_backoff": -1.0}, "initial_backoff"),
        ({"initial_backoff": float("nan")}, "initial_backoff"),
        ({"longest_backoff": 0.5}, "longest_backoff"),
        ({"longest_backoff": float("inf")}, "longest_backoff"),
        ({"longest_unschedulable": 0.0}, "longest_unschedulable"),
        ({"most_events": 0}, "most_events"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, float], named: str) -> None:
    with pytest.raises(InputError, match=named):
        QueueOptions(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("attempts", "seconds"), [(0, 0), (1, 1), (2, 2), (4, 8), (5, 10), (10_000, 10)])
def test_backoff(attempts: int, seconds: float) -> None:
    assert backoff_seconds(attempts, initial=1.0, longest=10.0) == seconds
