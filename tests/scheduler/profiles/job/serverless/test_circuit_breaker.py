"""When a provider gets no pods, and when it gets them again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from placement.virtual_nodes.options import Provider
from scheduler.profiles.job.serverless.circuit_breaker import Health, ProviderHealth

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


def test_many_failures_at_once_are_one() -> None:
    health = made()
    assert [health.failed(f"pod-{i}", since=0.0, now=10.0 + i / 100) for i in range(100)] == [True] + [False] * 99
    assert health.until == 40.0
    health.failed("late", since=0.0, now=50.0)  # of before, not the probe
    assert health.room(50.0) == 1


def test_a_pod_that_fails_among_others_that_start_is_at_fault_itself() -> None:
    health = made()
    health.started("good", 5.0)
    assert not health.failed("bad", since=4.0, now=6.0)
    health.started("good-2", 7.0)
    assert not health.failed("bad-2", since=4.0, now=8.0)
    assert health.failed("alone", since=9.0, now=10.0)


def test_the_third_failure_in_a_row_is_the_providers() -> None:
    health = made()
    health.started("good", 5.0)
    assert [health.failed(f"bad-{i}", since=4.0, now=6.0) for i in range(3)] == [False, False, True]


def test_a_gang_probes_as_a_whole_and_alone() -> None:
    health = made()
    health.failed("a", since=0.0, now=0.0)
    assert health.room(29.0, "shop/g") == 0
    assert health.room(30.0, "shop/g") is None and health.room(30.0) == 1
    for uid in ("g-0", "g-1"):
        health.seated(uid, 30.0, "shop/g")
        assert health.room(30.0, "shop/g") is None
        assert health.room(30.0) == health.room(30.0, "shop/other") == 0
    assert health.failed("g-0", since=30.0, now=40.0) and not health.failed("g-1", since=30.0, now=40.0)
    assert health.until == 100.0, "members that fail together are one failure"
    health.seated("single", 100.0)
    assert health.room(100.0, "shop/g") == 0
    health.left("single")
    health.seated("g-2", 101.0, "shop/g")
    health.seated("g-3", 101.0, "shop/g")
    health.started("g-3", 102.0)
    assert health.health(102.0) is Health.WORKS


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
