from __future__ import annotations

from placement.index import free_volumes
from placement.index.free_volumes import ProvisioningFailures
from testing.settable_clock import SettableClock


def test_a_failure_counts_for_a_while() -> None:
    clock = SettableClock(0.0)
    failures = ProvisioningFailures(seconds=100, clock=clock)
    failures.add("one", "a")
    clock.now = 60
    failures.add("one", "b")
    assert set(failures.nodes("one")) == {"a", "b"} and not failures.nodes("two")
    clock.now = 100
    assert set(failures.nodes("one")) == {"b"}
    failures.add("one", "b")
    clock.now = 199
    assert set(failures.nodes("one")) == {"b"}
    clock.now = 200
    assert not failures.nodes("one")


def test_it_does_not_grow_without_end() -> None:
    clock = SettableClock(0.0)
    failures = ProvisioningFailures(seconds=100, clock=clock)
    for i in range(free_volumes._MOST_CLAIMS + 50):
        failures.add(f"claim-{i}", "a")
    for i in range(free_volumes._MOST_NODES + 50):
        failures.add("last", f"n{i}")
    assert len(failures._of) == free_volumes._MOST_CLAIMS and not failures.nodes("claim-0")
    nodes = failures.nodes("last")
    assert len(nodes) == free_volumes._MOST_NODES and "n0" not in nodes
    clock.now = 100
    failures.add("new", "a")
    assert list(failures._of) == ["new"]
