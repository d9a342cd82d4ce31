"""Which pods count as members, and for what."""

from __future__ import annotations

from typing import Any

import pytest

from kube.objects.objects import Phase
from placement.pod_groups.labels import GROUP_LABEL, OLDER_GROUP_LABEL, ROLE, group_of, role_of
from placement.pod_groups.minima import Count, Minima
from scheduler.gangs.members import Member, Members, Standing, standing_of
from tests.scheduler.gangs.made_up import member

S = Standing


@pytest.mark.parametrize(
    ("facts", "sits", "is_ours", "standing"),
    [
        ({}, False, True, S.WAITS),
        ({}, False, False, S.FOREIGN),
        ({}, True, True, S.SITS),
        ({}, True, False, S.SITS),
        ({"gates": ("wait",)}, False, True, S.GATED),
        ({"gates": ("wait",)}, False, False, S.FOREIGN),
        ({"terminating": True}, True, True, S.LEAVING),
        ({"terminating": True}, False, True, S.LEAVING),
        ({"phase": Phase.SUCCEEDED}, False, True, S.SUCCEEDED),
        ({"phase": Phase.SUCCEEDED, "terminating": True}, False, False, S.SUCCEEDED),
        ({"phase": Phase.FAILED}, False, True, S.FAILED),
        ({"phase": Phase.RUNNING}, True, True, S.SITS),
        ({"phase": Phase.UNKNOWN}, True, True, S.SITS),
    ],
)
def test_standing(facts: dict[str, Any], sits: bool, is_ours: bool, standing: Standing) -> None:
    assert standing_of(member("a", **facts), sits=sits, is_ours=is_ours) is standing


@pytest.mark.parametrize(
    ("labels", "annotations", "group", "role"),
    [
        ({}, {}, None, ""),
        ({GROUP_LABEL: ""}, {}, None, ""),
        ({GROUP_LABEL: "g"}, {ROLE: "ps"}, "ml/g", "ps"),
        ({OLDER_GROUP_LABEL: "old"}, {}, "ml/old", ""),
        ({GROUP_LABEL: "g", OLDER_GROUP_LABEL: "old", ROLE: "worker"}, {ROLE: "ps"}, "ml/g", "worker"),
    ],
)
def test_group_and_role(labels: dict[str, str], annotations: dict[str, str], group: str | None, role: str) -> None:
    pod = member("a", labels=labels, annotations=annotations)
    assert (group_of(pod), role_of(pod)) == (group, role)


def test_one_that_succeeded_counts_while_its_controller_has_living_ones() -> None:
    members, minima = Members(), Minima(3, {"worker": 2})
    done = Member("worker", S.SUCCEEDED, owner="job")
    stray = Member("worker", S.SUCCEEDED)
    other = Member("worker", S.SUCCEEDED, owner="earlier")
    runs = Member("worker", S.SITS, owner="job", is_running=True)
    for one in (done, stray, other):
        members.count(one, 1)
    assert members.seated(minima) == Count(0, {"worker": 0})
    members.count(runs, 1)
    assert members.seated(minima) == members.present(minima) == Count(2, {"worker": 2})
    assert members.running == 1
    members.count(runs, -1)
    assert members.seated(minima) == Count(0, {"worker": 0}) and members.running == 0


def test_a_pod_is_in_the_list_of_its_standing_alone() -> None:
    members, pod = Members(), member("a")
    for standing, sitting, waiting in ((S.WAITS, [], ["a"]), (S.SITS, ["a"], []), (S.FAILED, [], [])):
        members.put(pod, standing)
        assert (list(members.sitting), list(members.waiting)) == (sitting, waiting)
    members.put(pod, S.SITS)
    members.drop("a")
    assert not members.sitting and not members.waiting


def test_nothing_is_kept_of_roles_and_owners_that_are_gone() -> None:
    members = Members()
    for n in range(100):
        for standing in Standing:
            one = Member(f"role-{n}", standing, owner=f"owner-{n}", is_assumed=n % 2 == 0)
            for number in (3, -1, -2):
                members.count(one, number)
    assert len(members) == members.ours == 0
    assert not any((members._members, members._by_role, members._assumed, members._living, members._succeeded))
