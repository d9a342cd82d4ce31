from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from placement.machine_groups.machine_group import ENDLESS, may_still_borrow, pods_within
from placement.node_rule_settings import Borrow, MachineGroupOptions
from tests.placement.machine_groups.group_world import GroupWorld, group_node, of_team

AMOUNT = st.integers(0, 10**6)


@given(keep=st.integers(0, 100), total=AMOUNT, free=AMOUNT, wanted=st.integers(1, 1000))
def test_as_many_as_leave_the_share_free_and_no_more(keep: int, total: int, free: int, wanted: int) -> None:
    n = pods_within(keep / 100, total=total, free=free, wanted=wanted)
    assert n >= 0
    if n:
        assert 100 * (free - n * wanted) >= keep * total
    assert 100 * (free - (n + 1) * wanted) < keep * total or free < (n + 1) * wanted


def test_the_scarcest_resource_decides_and_only_those_that_are_requested_count() -> None:
    world = GroupWorld([group_node("a", "g", n=4, cpu=100.0)])
    group = MachineGroupOptions(name="g", borrow=Borrow.IDLE, keep_free=0.5)

    def left(**wants: float) -> int:
        return may_still_borrow(of_team("p", "shop", borrows=True, **wants), group, world.view)  # type: ignore[arg-type]

    assert left(cpu=10.0) == 5 and left(n=1, cpu=1.0) == 2 and left(milli=100) == 20 and left(n=1, cpu=30.0) == 1
    assert left() == ENDLESS
    nobody_is_of_it = MachineGroupOptions(name="other", borrow=Borrow.IDLE, keep_free=0.5)
    assert may_still_borrow(of_team("p", "shop", cpu=1.0), nobody_is_of_it, world.view) == ENDLESS
