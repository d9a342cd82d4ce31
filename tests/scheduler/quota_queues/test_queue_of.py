from __future__ import annotations

import math
from typing import Any

import pytest

from base.errors import InputError
from scheduler.quota_queues.queue_of import QUEUE_ANNOTATION, QueueOf, QueueOwner, lane_of
from scheduler.quota_queues.quota_queue_settings import DEFAULT_QUEUE, Order, PodQueue, all_queues
from tests.scheduler.quota_queues.queue_pods import PROFILES, a_job_pod

QUEUES = [
    PodQueue(name="night", order=Order.FIFO),
    PodQueue(name="science", namespaces=("lab", "physics")),
    PodQueue(name="teams", namespaces=("shop",), owner_label="team"),
    PodQueue(name="later", namespaces=("lab",)),
]


@pytest.mark.parametrize(
    ("namespace", "said", "queue"),
    [
        ("elsewhere", None, "default"),
        ("lab", None, "science"),  # the first that names it
        ("lab", "later", "later"),
        ("lab", "night", "night"),  # open to all
        ("elsewhere", "science", "default"),  # not open to it
        ("lab", "no-such-queue", "science"),
        ("lab", "", "science"),
        ("elsewhere", "default", "default"),
    ],
)
def test_the_annotation_decides_if_the_queue_is_open_else_the_namespace(
    namespace: str, said: str | None, queue: str
) -> None:
    pod = a_job_pod("p", namespace=namespace, annotations={} if said is None else {QUEUE_ANNOTATION: said})
    assert QueueOf(QUEUES, PROFILES).of(pod) == QueueOwner(queue, namespace)


def test_owners_have_flows_of_their_own_where_the_queue_is_shared_among_them() -> None:
    queue_of = QueueOf(QUEUES, PROFILES)
    assert queue_of.flow_of(QueueOwner("teams", "red")) == "teams/red"
    assert queue_of.flow_of(QueueOwner("night", "lab")) == "night/"
    assert lane_of("teams/red") == "teams"
    assert lane_of("online") == "online"


def test_labels_by_the_thousand_make_no_thousand_owners() -> None:
    now = 0.0
    queue_of = QueueOf(QUEUES, PROFILES, most_owners=3, clock=lambda: now)

    def owner(team: str) -> str:
        member = queue_of.of(a_job_pod("p", namespace="shop", labels={"team": team}))
        assert member is not None
        return member.owner

    assert [owner(team) for team in "abc"] == ["a", "b", "c"]
    shared = {owner(f"t{n}") for n in range(1000)}
    assert len(shared) == 64
    assert all(name.startswith("#") for name in shared)
    assert owner("t1") == owner("t1")
    now = 3000.0
    assert owner("a") == "a"
    now = 3601.0
    assert owner("t1") == "t1"  # b was not seen for an hour
    assert owner("a") == "a"
    assert owner("t2").startswith("t2")  # nor c
    assert owner("b").startswith("#")


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
