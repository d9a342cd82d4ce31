"""Nobody decides on tables that may lack what a predecessor wrote."""

from __future__ import annotations

from collections.abc import Callable

from kube.leader_election.election import Takeover


class World:
    def __init__(self) -> None:
        self.leads, self.waits_for, self.is_read = False, "", False
        self.is_more_read = True
        self.readings = self.beginnings = 0
        self.takeover = Takeover(
            leads=lambda: self.leads,
            waits_for=lambda: self.waits_for,
            read_again=(self.read_again, lambda: lambda: self.is_more_read),
            begin=self.begin,
        )

    def read_again(self) -> Callable[[], bool]:
        self.readings += 1
        self.is_read = False
        return lambda: self.is_read

    def begin(self) -> None:
        self.beginnings += 1


def test_nothing_is_decided_before_all_was_read_every_time_anew() -> None:
    world = World()
    world.leads, world.is_more_read = True, False
    assert not world.takeover.may_decide()
    world.is_read = True
    assert not world.takeover.may_decide()
    world.is_more_read = True
    assert world.takeover.may_decide() and world.readings == 1
    world = World()
    for term in (1, 2):
        world.leads = True
        assert not world.takeover.may_decide()
        world.is_read = True
        assert world.takeover.may_decide() and world.takeover.may_decide()
        world.leads = False
        assert not world.takeover.may_decide()
        assert (world.readings, world.beginnings) == (term, term)
    world = World()
    world.leads, world.waits_for = True, "pods have not been listed"
    assert not world.takeover.may_decide()
    assert not world.readings
    world.waits_for = ""
    assert not world.takeover.may_decide()
    world.is_read = True
    assert world.takeover.may_decide()
