from __future__ import annotations

import math
from typing import Any

import pytest

from forecast.errors import InputError
from scheduler.queues.options import DEFAULT_QUEUE, Order, PodQueue, all_queues


def test_there_is_always_a_default_queue() -> None:
    assert [queue.name for queue in all_queues([PodQueue(name="a")])] == ["a", DEFAULT_QUEUE]
    own = PodQueue(name=DEFAULT_QUEUE, order=Order.FIFO)
    assert all_queues([own, PodQueue(name="a")]) == (PodQueue(name="a"), own.replace(profiles=("job",)))


@pytest.mark.parametrize(
    ("queue", "word"),
    [
        ({"name": "a/b"}, "DNS label"),
        ({"name": ""}, "DNS label"),
        ({"name": "a", "weight": 0.0}, "^PodQueue: weight is 0.0"),
        ({"name": "a", "weight": math.nan}, "^PodQueue: weight is nan"),
        ({"name": "a", "owner_weights": {"x": -1.0}}, "owner_weights.x is -1.0"),
        ({"name": "a", "most_per_turn": -1}, "most_per_turn"),
    ],
)
def test_a_queue_that_cannot_be_is_refused(queue: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        PodQueue(**queue)


@pytest.mark.parametrize(
    ("queues", "word"),
    [
        ([PodQueue(name="a"), PodQueue(name="a")], "a is there twice"),
        ([PodQueue(name=DEFAULT_QUEUE, namespaces=("x",))], "takes all pods of its profiles"),
    ],
)
def test_queues_that_contradict_each_other_are_refused(queues: list[PodQueue], word: str) -> None:
    with pytest.raises(InputError, match=word):
        all_queues(queues)
