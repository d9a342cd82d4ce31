"""Two or three replicas, one Lease, clocks that differ, requests that are late or lost: one may write at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.errors import InputError
from kube.leader_election.election import Election
from kube.leader_election.lease_options import LeaseOptions
from kube.leader_election.record import LeaseRecord

TIMING = LeaseOptions(duration=15, renew_deadline=10, retry_period=2)


def record(holder: str, renewed: str = "0", version: str = "1", seconds: float = 15.0) -> LeaseRecord:
    return LeaseRecord(holder, seconds, "0", renewed, 0, version)


@pytest.mark.parametrize(("lease", "deadline", "retry"), [(15, 15, 2), (15, 2, 2), (15, 10, 0), (0.5, 0.3, 0.1)])
def test_times_that_protect_nothing_are_refused(lease: float, deadline: float, retry: float) -> None:
    with pytest.raises(InputError, match=r"protects nothing|input should be (above|greater)|whole seconds"):
        LeaseOptions(duration=lease, renew_deadline=deadline, retry_period=retry)


def test_a_lease_is_led_from_a_confirmed_renewal_and_free_when_it_stood_still() -> None:
    ours = Election("a", TIMING)
    ours.observe(None, 0.0)
    assert ours.may_take(0.0)
    ours.observe(record(""), 1.0)
    assert ours.may_take(1.0)
    ours.observe(record("b", "1"), 2.0)
    assert not ours.may_take(2.0) and not ours.may_take(16.9) and ours.expires_in(7.0) == 10.0
    ours.observe(record("b", "2"), 16.9)
    assert not ours.may_take(31.8) and ours.may_take(31.9)
    ours.observe(record("b", "2", version="9"), 31.9)
    assert ours.may_take(31.9), "only labels changed"
    ours = Election("a", TIMING)
    ours.written(record("a"), began=100.0, now=104.0)
    assert ours.leads(109.9) and not ours.leads(110.0) and ours.left(104.0) == 6.0
    ours.observe(record("b"), 105.0)
    assert not ours.leads(105.0)
    ours = Election("a", TIMING)
    ours.observe(record("a"), 0.0)
    assert not ours.leads(0.0) and ours.may_take(0.0)


@dataclass
class World:
    """The Lease as the server has it, and replicas whose clocks began at different times."""

    n: int
    now: float = 0.0
    version: int = 0
    lease: LeaseRecord | None = None
    elections: list[Election] = field(default_factory=list)
    late: list[tuple[int, LeaseRecord | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.elections = [Election(f"r{i}", TIMING) for i in range(self.n)]

    def clock(self, replica: int) -> float:
        return self.now + 1000.0 * replica

    def write(self, replica: int, seen: LeaseRecord | None) -> LeaseRecord | None:
        """With the optimistic lock of the API server; None = conflict."""
        if (self.lease.version if self.lease else None) != (seen.version if seen else None):
            return None
        self.version += 1
        self.lease = record(f"r{replica}", renewed=f"{self.version}", version=f"{self.version}")
        return self.lease

    def leaders(self) -> list[int]:
        return [i for i, election in enumerate(self.elections) if election.leads(self.clock(i))]


FATES = st.sampled_from(["", "", "", "answer lost", "request lost", "request late", "slow"])
STEPS = st.lists(st.tuples(st.integers(0, 2), st.floats(0.0, 6.0), FATES), max_size=60)


@given(steps=STEPS)
def test_never_two_may_write(steps: list[tuple[int, float, str]]) -> None:
    world = World(3)
    for replica, passed, fate in steps:
        world.now += passed
        assert len(world.leaders()) <= 1
        for who, seen in world.late:
            world.write(who, seen)
        world.late.clear()
        election = world.elections[replica]
        election.observe(world.lease, world.clock(replica))
        assert len(world.leaders()) <= 1
        if not election.may_take(world.clock(replica)):
            continue
        began, seen = world.clock(replica), election.seen
        if fate == "request late":
            world.late.append((replica, seen))
        elif fate != "request lost" and (written := world.write(replica, seen)) and fate != "answer lost":
            if fate == "slow":
                world.now += 4.0
            election.written(written, began, world.clock(replica))
        assert len(world.leaders()) <= 1
