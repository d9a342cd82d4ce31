"""PodGroups of scheduling.k8s.io: what is read of them, their members, what evictions mean to them, their condition."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from kube.decoding.stored_templates import StoredCondition
from kube.objects.objects import PodInfo
from placement.pod_groups.group_apis import NATIVE, NATIVE_VERSIONS, OURS, pod_groups_path
from placement.pod_groups.minima import Minima
from placement.pod_groups.pod_group import Disruption, PodGroupInfo, PodGroupStatus
from scheduler.gangs.gang_gate import Reason
from scheduler.gangs.group_decoding import WATCHED_GROUPS
from scheduler.gangs.group_status import change_of_native, wanted_status
from scheduler.queue.queued_pods import UnitOf, unit_by_owner
from tests.scheduler.gangs.made_up import NOW, Scene, group, member

KEY = "ml/train of scheduling.k8s.io"
GANG: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": 3}}}


def decoded(spec: dict[str, Any], status: dict[str, Any] | None = None) -> PodGroupInfo:
    metadata = {"namespace": "ml", "name": "train", "uid": "u-1", "generation": 2, "resourceVersion": "7"}
    manifest = {"metadata": metadata, "spec": spec, "status": status or {}}
    return WATCHED_GROUPS[NATIVE].decoded(json.dumps(manifest).encode())[0]


def native(uid: str, *, of: str = "train", **changes: Any) -> PodInfo:
    """A member of a native group."""
    return replace(member(uid, of=""), scheduling_group=of, **changes)


def native_group(members: int = 2, **changes: Any) -> PodGroupInfo:
    facts: dict[str, Any] = {"api": NATIVE, "disruption": Disruption.SINGLE}
    return group(members, **(facts | changes))


def scene(*groups: PodGroupInfo) -> Scene:
    """With all groups of both APIs listed."""
    made = Scene()
    made.directory.replace_groups(groups, NATIVE)
    return made


@pytest.mark.parametrize(
    ("spec", "facts"),
    [
        (GANG, {"minima": Minima(3), "disruption": Disruption.SINGLE, "priority": None, "may_preempt": None}),
        ({"schedulingPolicy": {"basic": {}}}, {"minima": Minima(1), "is_basic": True}),
        (GANG, {"is_basic": False}),
        (GANG | {"disruptionMode": {"single": {}}}, {"disruption": Disruption.SINGLE}),
        (GANG | {"disruptionMode": {"all": {}}}, {"disruption": Disruption.ALL}),
        (GANG | {"priority": 100, "preemptionPolicy": "Never"}, {"priority": 100, "may_preempt": False}),
    ],
)
def test_what_a_native_group_asks_for(spec: dict[str, Any], facts: dict[str, Any]) -> None:
    found = decoded(spec)
    assert (found.key, found.problem, found.version, found.api) == (KEY, "", "7", NATIVE)
    assert {name: getattr(found, name) for name in facts} == facts


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (
            GANG | {"parentCompositePodGroupName": "all"},
            "spec.parentCompositePodGroupName: CompositePodGroup all is not",
        ),
        (GANG | {"resourceClaims": [{"name": "nic"}]}, "spec.resourceClaims: nic is a claim of the whole group"),
        (
            GANG | {"schedulingConstraints": {"topology": [{"key": "rack"}]}},
            "spec.schedulingConstraints.topology: rack is",
        ),
        ({"schedulingPolicy": {}}, "spec.schedulingPolicy: must have one of gang and basic"),
        (
            {"schedulingPolicy": {"gang": {"minCount": 0}}},
            "spec: Expected `int` >= 1 - at `$.schedulingPolicy.gang.minC",
        ),
        (GANG | {"disruptionMode": "PodGroup"}, "spec: Expected `object | null`, got `str` - at `$.disruptionMode`"),
        ({}, "spec: Object missing required field `schedulingPolicy`"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(spec: dict[str, Any], says: str) -> None:
    found = decoded(spec)
    assert found.problem.startswith(says), found.problem
    made = scene(found)
    assert made.directory.gate(native("a")).reason == f"PodGroup train cannot be used: {found.problem}"


def test_a_group_is_written_in_the_version_in_which_it_was_read() -> None:
    watched, read = WATCHED_GROUPS[NATIVE], []
    body = json.dumps({"metadata": {"namespace": "ml", "name": "train"}, "spec": GANG}).encode()
    for _ in NATIVE_VERSIONS:
        found = watched.decoded(body)[0]
        assert watched.path == f"{found.api.path}/podgroups"
        assert (found.key, found.minima) == (KEY, Minima(3)), "one key, whatever the version"
        read.append(pod_groups_path("ml", found.api))
        watched = watched.at_next_version()
    paths = [f"/apis/scheduling.k8s.io/{one}/namespaces/ml/podgroups" for one in ("v1", "v1beta1", "v1alpha3")]
    assert read == paths and watched.path == WATCHED_GROUPS[NATIVE].path


def test_a_pod_that_names_a_group_of_an_api_that_is_not_served_says_how_to_get_it() -> None:
    made = Scene()
    made.put(native("a"))
    assert made.directory.gate(native("a")).reason == f"waits until PodGroup {KEY} has been read"
    made.directory.replace_groups([], NATIVE, is_served=False)
    found = made.directory.gate(native("a")).reason
    assert found.startswith(f"PodGroup {KEY} does not exist: the API server does not serve podgroups of {NATIVE.group}")
    assert "GenericWorkload" in found
    made.directory.replace_groups([], NATIVE)
    assert made.directory.gate(native("a")).reason == f"PodGroup {KEY} does not exist"


def test_pods_of_a_group_that_asks_for_nothing_are_tried_like_those_of_any_controller() -> None:
    made = scene()
    pod = native("a", owner_uid="job-1")
    made.put(pod)
    assert made.directory.unit_of(pod) == UnitOf(KEY, None, True), "what it asks for is not known"
    made.directory.put_group(native_group(1, is_basic=True))
    assert made.directory.unit_of(pod) == unit_by_owner(pod)
    assert made.directory.gate(pod).is_success
    made.directory.put_group(native_group(2))
    assert made.directory.unit_of(pod).is_gang


def test_a_pod_of_another_priority_than_its_group_waits() -> None:
    made = scene(native_group(2, priority=100, may_preempt=True))
    made.put(native("a", priority=100), native("b", priority=10), native("c", priority=100, may_preempt=False))
    assert made.directory.gate(native("a", priority=100)).reason == ""
    assert made.directory.gate(native("b", priority=10)).reason.startswith(
        "the pod has priority 10, its PodGroup train 100: give both the same priorityClassName"
    )
    assert "preemptionPolicy" in made.directory.gate(native("c", priority=100, may_preempt=False)).reason


@pytest.mark.parametrize(
    ("disruption", "breaks_without_one", "breaks_without_two"),
    [(Disruption.BY_MINIMA, False, True), (Disruption.SINGLE, False, False), (Disruption.ALL, True, True)],
)
def test_the_disruption_mode_decides_whether_victims_go_whole(
    disruption: Disruption, breaks_without_one: bool, breaks_without_two: bool
) -> None:
    made = scene(native_group(2, disruption=disruption))
    made.put(*(native(uid, node="n1") for uid in "abc"))
    assert made.directory.breaks_without(KEY, ["a"]) is breaks_without_one
    assert made.directory.breaks_without(KEY, ["a", "b"]) is breaks_without_two
    assert not made.directory.breaks_without(KEY, ["of another group"])


def conditions(of: Scene, status: PodGroupStatus = PodGroupStatus()) -> list[tuple[str, str, str]] | None:  # noqa: B008
    report = of.directory.report(KEY)
    assert report is not None
    change = change_of_native(wanted_status(report), status, NOW)
    return None if change is None else [(one["type"], one["status"], one["reason"]) for one in change["conditions"]]


def test_the_condition_is_that_of_kube_scheduler() -> None:
    made = scene(native_group(2))
    made.put(native("a"))
    assert conditions(made) is None, "nothing was tried"
    made.put(native("b"))
    assert conditions(made) is None
    made.directory.attempt_failed(KEY, "1 of 2 members fit", "0/1 nodes are available")
    assert conditions(made) == [("PodGroupInitiallyScheduled", "False", "Unschedulable")]
    made.put(native("a", node="n1"), native("b", node="n1"))
    other = StoredCondition("DisruptionTarget", "True", "PreemptionByScheduler")
    expected = [
        ("DisruptionTarget", "True", "PreemptionByScheduler"),
        ("PodGroupInitiallyScheduled", "True", "Scheduled"),
    ]
    assert conditions(made, PodGroupStatus(conditions=(other,))) == expected
    placed = PodGroupStatus(conditions=(StoredCondition(NATIVE.condition, "True", "Scheduled"),))
    assert conditions(made, placed) is None
    made.cluster.delete_pod("a")
    assert made.directory.report(KEY).verdict.reason is Reason.NOT_ENOUGH_MEMBERS  # type: ignore[union-attr]
    assert conditions(made, placed) is None, "once True, it stays"


def test_the_phase_of_a_native_group_comes_from_its_condition() -> None:
    for status, phase in (("True", "Scheduled"), ("False", "Scheduling")):
        found = decoded(GANG, {"conditions": [{"type": NATIVE.condition, "status": status, "reason": "x"}]})
        assert found.status.phase == phase
    assert decoded(GANG).status.phase == "" == decoded(GANG, {"conditions": "none"}).status.phase
    assert OURS.condition != NATIVE.condition
