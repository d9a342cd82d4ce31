"""Which pods count as members, and for what."""

from __future__ import annotations

from typing import Any

import pytest

from kube.objects.objects import Phase
from placement.pod_groups.labels import GROUP_LABEL, OLDER_GROUP_LABEL, ROLE, group_of, role_of
from scheduler.gangs.members import Standing, standing_of
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
