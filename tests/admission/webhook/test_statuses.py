"""What is written into statuses: only what has changed, and nothing that another replica knows better."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from admission.templates.template_objects import (
    NodeSchedulerConfig,
    SchedulerConfigBinding,
    TemplateKind,
    TemplateReference,
)
from admission.templates.template_set import BindingProblem
from admission.webhook.binding_statuses import WantedStatus, change_of, uses, wanted_of_binding, wanted_of_template
from kube.decoding.stored_templates import LastError, ObjectStatus, Stored, StoredCondition

NOW = "2026-11-21T18:00:00Z"
BEFORE = "2026-11-20T18:00:00Z"
POOL = TemplateReference(TemplateKind.NODE, "pool")
WANTED = WantedStatus(True, "Applies", "new pods are shaped", 3, {"boundPods": 5})
READY = StoredCondition("Ready", "True", "Applies", "new pods are shaped", BEFORE, 3)


def _binding(generation: int = 3, *, problem: str = "", **rest: Any) -> Stored[SchedulerConfigBinding]:
    binding = SchedulerConfigBinding("evening", POOL, "u-1", generation, **rest)
    return Stored("evening", "u-1", generation, None if problem else binding, problem, ObjectStatus())


def _set(*bindings: SchedulerConfigBinding | None, **problems: BindingProblem) -> Any:
    return SimpleNamespace(
        bindings={one.name: one for one in bindings if one is not None},
        problems=problems,
        template_of=lambda one: None if problems else NodeSchedulerConfig("pool", "u-t", 5),
    )


def test_a_new_object_gets_everything() -> None:
    assert change_of(WANTED, ObjectStatus(), NOW) == {
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Applies",
                "message": "new pods are shaped",
                "lastTransitionTime": NOW,
                "observedGeneration": 3,
            }
        ],
        "boundPods": 5,
    }


def test_a_condition_keeps_its_time_until_it_turns_and_other_conditions_stay() -> None:
    theirs = StoredCondition("Theirs", "True", "Because")
    older = StoredCondition("Ready", "True", "Applies", "in other words", BEFORE, 2)
    change = change_of(WANTED, ObjectStatus((theirs, older), bound_pods=5), NOW)
    assert change is not None and list(change) == ["conditions"]
    others, ours = change["conditions"]
    assert others == {"type": "Theirs", "status": "True", "reason": "Because"}
    assert ours["lastTransitionTime"] == BEFORE and ours["observedGeneration"] == 3
    turned = change_of(WantedStatus(False, "TemplateNotFound", "no", 3), ObjectStatus((READY,)), NOW)
    assert turned is not None and turned["conditions"][0]["lastTransitionTime"] == NOW


def test_only_what_has_changed_and_is_not_newer_elsewhere_is_written() -> None:
    current = ObjectStatus((READY,), bound_pods=5)
    assert change_of(WANTED, current, NOW) is None
    assert change_of(WANTED, ObjectStatus((READY,), bound_pods=4), NOW) == {"boundPods": 5}
    # Nor is anything said of a generation that is not in effect yet.
    assert wanted_of_binding(_binding(4), _set(_binding(3).object), {}, None) is None
    assert wanted_of_binding(_binding(), _set(), {}, None) is None
    newer = StoredCondition("Ready", "False", "Invalid", "found out by another", NOW, 4)
    assert change_of(WANTED, ObjectStatus((newer,), bound_pods=6), NOW) is None


@pytest.mark.parametrize(
    ("there", "ours", "written"),
    [
        (("u-t", 5), ("u-t", 4), False),
        (("u-t", 5), ("u-t", 6), True),
        (("u-t", 5), ("made anew", 1), True),
        (("u-t", 5), None, True),
        (None, ("u-t", 1), True),
    ],
)
def test_nor_does_a_replica_say_anything_of_an_older_template(
    there: tuple[str, int] | None, ours: tuple[str, int] | None, written: bool
) -> None:
    uid, version = there or (None, None)
    current = ObjectStatus((READY,), template_uid=uid, template_version=version)
    change = change_of(WantedStatus(False, "InvalidArguments", "no", 3, {"boundPods": 2}, template=ours), current, NOW)
    assert (change is not None) is written
    if change is not None:
        assert (change["templateUid"], change["templateVersion"]) == (ours or (None, None))
        assert change["conditions"][0]["reason"] == "InvalidArguments"


@pytest.mark.parametrize(
    ("there", "ours", "written"),
    [(None, NOW, True), (BEFORE, NOW, True), (NOW, NOW, False), (NOW, BEFORE, False), (BEFORE, None, False)],
)
def test_the_newest_error_wins_and_none_is_erased(there: str | None, ours: str | None, written: bool) -> None:
    current = ObjectStatus((READY,), last_error=None if there is None else LastError("a", "shop/x", there))
    wanted = WantedStatus(
        True, "Applies", "new pods are shaped", 3, error=None if ours is None else LastError("b", "shop/y", ours)
    )
    change = change_of(wanted, current, NOW)
    assert change == ({"lastError": {"message": "b", "pod": "shop/y", "time": ours}} if written else None)


def test_a_binding_says_whether_it_applies() -> None:
    counts = {"boundPods": 1}
    fine, suspended, broken = _binding(), _binding(suspended=True), _binding(problem="spec.pods: is missing")
    problem = BindingProblem("TemplateNotFound", "there is no NodeSchedulerConfig/pool")
    cases = [
        (fine, _set(fine.object), True, "Applies"),
        (suspended, _set(suspended.object), True, "Suspended"),
        (fine, _set(fine.object, evening=problem), False, "TemplateNotFound"),
        (broken, _set(), False, "Invalid"),
    ]
    for one, templates, ready, reason in cases:
        wanted = wanted_of_binding(one, templates, counts, None)
        assert wanted is not None
        assert (wanted.ready, wanted.reason, wanted.generation, wanted.counts) == (ready, reason, 3, counts)
        assert wanted.template == (None if templates.problems or one is broken else ("u-t", 5))


def test_a_template_says_whether_it_is_valid_and_who_uses_it() -> None:
    used = uses(_set(_binding().object))
    template = NodeSchedulerConfig("pool", "u-2", 7)
    wanted = wanted_of_template(Stored("pool", "u-2", 7, template, "", ObjectStatus()), used)
    assert (wanted.ready, wanted.generation, wanted.counts) == (True, 7, {"bindings": 1})
    other = NodeSchedulerConfig("other", "u-3", 1, problem="spec.parameters[0]: has no type")
    wanted = wanted_of_template(Stored("other", "u-3", 1, other, "", ObjectStatus()), used)
    assert (wanted.ready, wanted.reason, wanted.counts) == (False, "Invalid", {"bindings": 0})
    assert "spec.parameters[0]" in wanted.message
    unreadable: Stored[NodeSchedulerConfig] = Stored("x", "u-4", 1, None, "spec is no object", ObjectStatus())
    assert wanted_of_template(unreadable, used).message == "spec is no object"
