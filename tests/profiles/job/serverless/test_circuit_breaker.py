"""When a provider gets no pods, and when it gets them again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from placement.virtual_node_settings import Provider
from profiles.job.circuit_breaker import Health, ProviderHealth

PROVIDER = Provider(name="p")


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
