"""When a provider gets no pods, and when it gets them again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.virtual_nodes.options import Provider
from scheduler.profiles.job.job_annotations import terms_of
from scheduler.profiles.job.serverless.circuit_breaker import Health, ProviderHealth
from scheduler.profiles.job.serverless.may_leave import may_leave
from scheduler.profiles.job.serverless.provider_choice import Offer, next_share
from testing.placement.views import pod_with

PROVIDER = Provider(name="p", backoff_initial=30.0, backoff_longest=600.0)


def made() -> ProviderHealth:
    return ProviderHealth(PROVIDER)


def test_a_failure_pauses_it_then_one_pod_finds_out() -> None:
    health = made()
    assert health.room(0.0) is None
    assert health.failed("a", since=0.0, now=10.0)
    assert health.health(39.9) is Health.BACKS_OFF and health.room(39.9) == 0
    assert health.health(40.0) is Health.PROBES and health.room(40.0) == 1
    health.seated("b", 40.0)
    assert health.room(41.0) == 0
    health.started("b", 42.0)
    assert health.health(42.0) is Health.WORKS and health.room(42.0) is None


def test_probes_that_fail_double_the_pause_up_to_the_longest() -> None:
    health, now, pauses = made(), 0.0, []
    health.failed("first", since=0.0, now=now)
    for number in range(7):
        pauses.append(health.until - now)
        now = health.until
        health.seated(f"probe-{number}", now)
        assert health.failed(f"probe-{number}", since=now, now=now)
    assert pauses == [30.0, 60.0, 120.0, 240.0, 480.0, 600.0, 600.0]
    health.seated("good", health.until)
    health.started("good", health.until)
    health.failed("later", since=1e6, now=1e6)
    assert health.until == 1e6 + 30.0, "one that starts makes up for all"


@given(
    st.lists(st.tuples(st.sampled_from(["seat", "start", "fail", "leave", "wait"]), st.integers(0, 4)), max_size=60),
)
def test_it_never_stays_closed_and_never_probes_with_two(told: list[tuple[str, int]]) -> None:
    health, now = made(), 1_000.0
    for what, number in told:
        uid = f"pod-{number}"
        match what:
            case "seat" if health.room(now) != 0:
                health.seated(uid, now)
            case "start":
                health.started(uid, now)
            case "fail":
                health.failed(uid, now - 1.0, now)
            case "leave":
                health.left(uid)
            case "wait":
                now += 100.0 * number
        assert len(health.probing) <= 1
        assert health.until - now <= PROVIDER.backoff_longest
    for uid in list(health.probing):
        health.left(uid)
    assert health.room(now + PROVIDER.backoff_longest) in (None, 1)


PLENTY = 10**6


def shared_out(offers: list[Offer], n_pods: int, *, most: int = 10**6) -> list[int]:
    """Pods that each gets in the end; asked for at most so many at a time."""
    given_to = [0] * len(offers)
    left = n_pods
    while left:
        open_ones = [i for i, one in enumerate(offers) if one.room > given_to[i]]
        if not open_ones:
            break
        now = [
            replace(offers[i], pods=offers[i].pods + given_to[i], room=offers[i].room - given_to[i]) for i in open_ones
        ]
        first, share = next_share(now, min(left, most))
        assert 1 <= share <= min(left, now[first].room)
        given_to[open_ones[first]] += share
        left -= share
    return given_to


weights = st.lists(st.floats(0.1, 10.0), min_size=1, max_size=3)


@given(weights, st.integers(1, 200))
def test_shares_are_those_of_the_weights_within_one_pod(weights: list[float], n_pods: int) -> None:
    got = shared_out([Offer(weight, 0, PLENTY) for weight in weights], n_pods)
    for weight, pods in zip(weights, got, strict=True):
        assert abs(pods - n_pods * weight / sum(weights)) <= 1.0 + 1e-9


@given(
    st.lists(st.builds(Offer, st.floats(0.1, 10.0), st.integers(0, 50), st.integers(0, 60)), max_size=5),
    st.integers(0, 200),
)
def test_nobody_gets_more_than_it_has_room_for_and_nothing_is_left_over(offers: list[Offer], n_pods: int) -> None:
    got = shared_out(offers, n_pods)
    assert all(pods <= one.room for pods, one in zip(got, offers, strict=True))
    assert sum(got) == min(n_pods, sum(one.room for one in offers))


@given(
    st.lists(st.builds(Offer, st.floats(0.1, 10.0), st.integers(0, 50), st.integers(1, 60)), min_size=1, max_size=4),
    st.integers(1, 100),
)
def test_many_at_once_get_what_one_by_one_gives(offers: list[Offer], n_pods: int) -> None:
    assert shared_out(offers, n_pods) == shared_out(offers, n_pods, most=1)


def why_not(spec: dict[str, Any], **metadata: Any) -> str:
    pod = pod_with(spec, **metadata)
    return may_leave(pod, terms_of(pod))


@pytest.mark.parametrize(
    ("volume", "stays"),
    [
        ({"configMap": {"name": "c"}}, False),
        ({"secret": {"secretName": "s"}}, False),
        ({"emptyDir": {"medium": "Memory"}}, False),
        ({"projected": {"sources": []}}, False),
        ({"downwardAPI": {}}, False),
        ({"image": {"reference": "registry.example/data:1"}}, False),
        ({"hostPath": {"path": "/data"}}, True),
        ({"persistentVolumeClaim": {"claimName": "c"}}, True),
        ({"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}, True),
        ({"nfs": {"server": "s", "path": "/"}}, True),
        ({"csi": {"driver": "d"}}, True),
        ({"awsElasticBlockStore": {"volumeID": "v"}}, True),
    ],
)
def test_volumes_come_along_only_if_the_api_server_has_them(volume: dict[str, Any], stays: bool) -> None:
    why = why_not({"volumes": [{"name": "w", "emptyDir": {}}, {"name": "v"} | volume]})
    assert "volumes" in why if stays else why == ""


@pytest.mark.parametrize(
    ("kind", "stays"), [("DaemonSet", True), ("Node", True), ("Job", False), ("ReplicaSet", False)]
)
def test_pods_that_are_there_for_their_node_stay(kind: str, stays: bool) -> None:
    owner = {"apiVersion": "v1", "kind": kind, "name": "o", "uid": "u", "controller": True}
    assert bool(why_not({}, ownerReferences=[owner])) == stays
