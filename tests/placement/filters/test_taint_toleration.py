"""Tables of framework/plugins/tainttoleration/taint_toleration_test.go, with the gates as they are by default."""

from __future__ import annotations

from typing import Any

import pytest

from kube.objects.objects import Taint
from placement.filters.taint_toleration import TaintToleration, tolerated
from testing.placement.views import PASSES, Verdict, node_named, pod_with, verdict, view_of

REJECTED = Verdict.no("node(s) had untolerated taint(s)")
USER1 = Taint("dedicated", "user1", "NoSchedule")
BAR = Taint("foo", "bar", "NoSchedule")


def toleration(key: str, value: str = "", effect: str = "", operator: str = "") -> dict[str, Any]:
    return {"key": key, "value": value, "effect": effect, "operator": operator}


@pytest.mark.parametrize(
    ("tolerations", "taints", "expected"),
    [
        pytest.param([], [USER1], REJECTED, id="no tolerations, a taint"),
        pytest.param(
            [toleration("dedicated", "user2", "NoSchedule", "Equal")], [USER1], REJECTED, id="dedicated to another user"
        ),
        pytest.param([toleration("foo", "", "NoSchedule", "Exists")], [BAR], PASSES, id="Exists tolerates every value"),
        pytest.param(
            [toleration("dedicated", "user2", "NoSchedule"), toleration("foo", "", "NoSchedule", "Exists")],
            [Taint("dedicated", "user2", "NoSchedule"), BAR],
            PASSES,
            id="several of both, all tolerated",
        ),
        pytest.param([toleration("foo", "bar", "PreferNoSchedule")], [BAR], REJECTED, id="another effect"),
        pytest.param(
            [toleration("dedicated", "user2", "NoSchedule")],
            [Taint("dedicated", "user1", "PreferNoSchedule")],
            PASSES,
            id="PreferNoSchedule keeps nobody away",
        ),
        pytest.param([], [Taint("dedicated", "user1", "NoExecute")], REJECTED, id="NoExecute keeps away, too"),
        pytest.param([toleration("", "", "NoExecute", "Exists")], [USER1], REJECTED, id="every key, another effect"),
        pytest.param(
            [toleration("sla", "750", "NoSchedule", "Gt")],
            [Taint("sla", "950", "NoSchedule")],
            REJECTED,
            id="Gt is off by default",
        ),
        pytest.param([toleration("foo", "bar", "", "Like")], [BAR], REJECTED, id="an operator that does not exist"),
    ],
)
def test_upstream(tolerations: list[dict[str, Any]], taints: list[Taint], expected: Verdict) -> None:
    assert (
        verdict(TaintToleration(), pod_with({"tolerations": tolerations}), node_named("n", taints=taints)) == expected
    )


def test_others_ask_for_other_effects() -> None:
    view = view_of([node_named("soft", taints=[Taint("a", "", "PreferNoSchedule")]), node_named("hard", taints=[BAR])])

    assert tolerated((), view).tolist() == [True, False]
    assert tolerated((), view, {"PreferNoSchedule"}).tolist() == [False, True]
