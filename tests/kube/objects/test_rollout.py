from __future__ import annotations

from dataclasses import replace

import pytest

from forecast.service_key import ServiceKey
from kube.objects.objects import ReplicaSetInfo
from kube.objects.rollout import ROLLOUT_SECONDS, Rollouts, deployment_of, newest_revision, replicas_wanted
from tests.kube.api_objects import replica_set

T0 = 1_000_000.0
CART = ServiceKey("shop", "Deployment", "cart")


def revision(number: int | None, *, created: float = T0, desired: int | None = 4) -> ReplicaSetInfo:
    return replica_set(f"cart-{number}", deployment="cart", revision=number, desired_replicas=desired, created=created)


@pytest.mark.parametrize(
    ("name", "replica_sets", "now", "superseded", "wanted"),
    [
        ("one revision, its pods are being made", [revision(1)], T0, set(), 4),
        ("one revision, for long", [revision(1)], T0 + ROLLOUT_SECONDS, set(), None),
        ("under way", [revision(1), revision(2)], T0, {1}, 4),
        ("started a moment ahead of our clock", [revision(1), revision(2, created=T0 + 5)], T0, {1}, 4),
        ("almost too long", [revision(1), revision(2)], T0 + ROLLOUT_SECONDS - 1, {1}, 4),
        ("too long", [revision(1), revision(2)], T0 + ROLLOUT_SECONDS, set(), None),
        ("two at once", [revision(1), revision(2), revision(3, desired=7)], T0, {1, 2}, 7),
        ("number not known", [revision(1), revision(2, desired=None)], T0, {1}, None),
        ("to zero", [revision(1), revision(2, desired=0)], T0, {1}, 0),
        ("revision not known", [revision(None), revision(2)], T0, set(), 4),
        ("back to an old one", [revision(2), revision(3, created=T0 - 9000)], T0, set(), None),
    ],
)
def test_which_revisions_are_being_replaced(
    name: str, replica_sets: list[ReplicaSetInfo], now: float, superseded: set[int], wanted: int | None
) -> None:
    rollouts = Rollouts()
    for one in replica_sets:
        assert rollouts.put(one) == [CART]
    assert {r.revision for r in replica_sets if rollouts.is_superseded(r.uid, now)} == superseded
    assert replicas_wanted(rollouts.of(CART), 1, now) == wanted


def test_the_highest_revision_of_a_deployment_is_the_newest() -> None:
    back = replace(revision(3), created=T0 - 9000)
    assert newest_revision([revision(2), back, revision(None)]) == back
    assert newest_revision([revision(None)]) is None
    assert newest_revision([]) is None
    alone = replica_set("alone")
    assert deployment_of(alone) is None
    rollouts = Rollouts()
    assert rollouts.put(alone) == rollouts.delete(alone.uid) == rollouts.delete("never there") == []
    assert not rollouts.is_superseded(alone.uid, T0)


def test_what_the_clock_turns() -> None:
    rollouts = Rollouts()
    rollouts.put(revision(1, created=T0 - 9000))
    rollouts.put(revision(2))
    end = T0 + ROLLOUT_SECONDS
    assert rollouts.turned(T0, T0 + 10) == []
    assert rollouts.turned(T0 + 10, end - 1) == []
    assert rollouts.turned(end - 1, end) == [CART]
    assert rollouts.turned(end, end + 9999) == []
    assert rollouts.turned(end + 9999, T0) == [CART]  # a clock that was set back
    assert rollouts.turned(T0, end + 1) == [CART]
