"""Whose pods wait here, and which gates keep them out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kube.objects.objects import Phase
from placement.advice_gate import ADVICE
from scheduler.pods_to_place import PodsToPlace
from testing.objects import pod_info

NAMES = frozenset({"default-scheduler", "second"})
OURS, ADVISED = PodsToPlace(NAMES), PodsToPlace(NAMES, gate=ADVICE)
POD = pod_info("a")
OTHER = "kueue.x-k8s.io/admission"


@pytest.mark.parametrize(
    ("changes", "is_there"),
    [
        ({}, True),
        ({"scheduler_name": "second"}, True),
        ({"gates": (OTHER,)}, True),  # when its gate is gone
        ({"scheduler_name": "forecast-scheduler"}, False),
        ({"node": "n1"}, False),
        ({"phase": Phase.FAILED}, False),
        ({"terminating": True}, False),
    ],
)
def test_pods_of_these_names_that_wait(changes: dict[str, Any], is_there: bool) -> None:
    pod = replace(POD, **changes)
    assert OURS.include(pod) is is_there
    assert ADVISED.include(replace(pod, gates=(*pod.gates, ADVICE))) is is_there


def test_with_a_gate_only_pods_that_have_it() -> None:
    assert not ADVISED.include(POD) and not ADVISED.include(replace(POD, gates=(OTHER,)))
    assert ADVISED.include(replace(POD, gates=(ADVICE,))) and ADVISED.include(replace(POD, gates=(OTHER, ADVICE)))


def test_pods_may_be_wanted_one_by_one() -> None:
    wanted = PodsToPlace(NAMES, wanted=lambda pod: pod.name == "a")
    assert wanted.include(POD) and not wanted.include(replace(POD, name="b"))
    assert not wanted.include(replace(POD, node="n1"))


def test_only_the_own_gate_is_open() -> None:
    assert ADVISED.closed_gates(replace(POD, gates=(OTHER, ADVICE, "b"))) == (OTHER, "b")
    assert ADVISED.closed_gates(replace(POD, gates=(ADVICE,))) == ()
    assert OURS.closed_gates(replace(POD, gates=(ADVICE,))) == (ADVICE,)
