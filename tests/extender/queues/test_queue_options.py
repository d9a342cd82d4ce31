from __future__ import annotations

import math
from typing import Any

import pytest

from extender.queues.options import DEFAULT_QUEUE, FairOptions, JobQueue, Order, all_queues
from forecast.errors import InputError


def test_there_is_always_a_default_queue() -> None:
    assert [queue.name for queue in all_queues([JobQueue("a")])] == ["a", DEFAULT_QUEUE]
    own = JobQueue(DEFAULT_QUEUE, order=Order.FIFO)
    assert all_queues([own]) == (own,)


@pytest.mark.parametrize(
    ("queue", "word"),
    [
        ({"name": "a/b"}, "DNS label"),
        ({"name": ""}, "DNS label"),
        ({"name": "a", "weight": 0.0}, "weight of job queue a"),
        ({"name": "a", "weight": math.nan}, "weight of job queue a"),
        ({"name": "a", "owner_weights": {"x": -1.0}}, "owner 'x'"),
        ({"name": "a", "most_per_turn": -1}, "most_per_turn"),
    ],
)
def test_a_queue_that_cannot_be_is_refused(queue: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        JobQueue(**queue)


@pytest.mark.parametrize(
    ("queues", "word"),
    [
        ([JobQueue("a"), JobQueue("a")], "a is there twice"),
        ([JobQueue(DEFAULT_QUEUE, namespaces=("x",))], "must be open to all"),
    ],
)
def test_queues_that_contradict_each_other_are_refused(queues: list[JobQueue], word: str) -> None:
    with pytest.raises(InputError, match=word):
        all_queues(queues)


@pytest.mark.parametrize(
    "options", [{"longest_wait": -1.0}, {"due_lead": math.inf}, {"quantum": 0}, {"online_weight": 0.0}]
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        FairOptions(**options)
