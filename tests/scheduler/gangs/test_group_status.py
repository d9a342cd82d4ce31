"""What the status of a group says, and what is written so that it does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from kube.decoding.stored_templates import StoredCondition
from kube.objects.objects import PodInfo, PodPhase
from placement.pod_groups.pod_group import PodGroupInfo, PodGroupStatus
from scheduler.gangs.gang_gate import Reason
from scheduler.gangs.group_status import WantedGroupStatus, change_of, wanted_status
from tests.scheduler.gangs.made_up import NOW, TRAIN, Scene, group, member


def status_of(scene: Scene) -> WantedGroupStatus:
    report = scene.directory.report(TRAIN)
    assert report is not None
    return wanted_status(report)


def of(*pods: PodInfo, info: PodGroupInfo | None = None) -> WantedGroupStatus:
    scene = Scene()
    scene.directory.put_group(info or group(2))
    scene.put(*pods)
    return status_of(scene)


def sits(uid: str, **changes: Any) -> PodInfo:
    return member(uid, node="n1", **changes)


RUNS = {"phase": PodPhase.RUNNING, "owner": "job"}
DONE = {"phase": PodPhase.SUCCEEDED, "owner": "job"}


@pytest.mark.parametrize(
    ("pods", "phase", "status", "reason"),
    [
        ([], "Pending", "False", Reason.NOT_ENOUGH_MEMBERS),
        ([member("a")], "Pending", "False", Reason.NOT_ENOUGH_MEMBERS),
        ([member("a"), member("b")], "PreScheduling", "Unknown", Reason.QUEUED),
        ([sits("a"), member("b")], "Unknown", "Unknown", Reason.QUEUED),
        ([sits("a")], "Unknown", "False", Reason.NOT_ENOUGH_MEMBERS),
        ([sits("a"), sits("b")], "Scheduled", "True", Reason.SCHEDULED),
        ([sits("a", **RUNS), sits("b")], "Scheduled", "True", Reason.SCHEDULED),
        ([sits("a", **RUNS), sits("b", **RUNS), member("c")], "Running", "True", Reason.SCHEDULED),
        ([sits("a", **RUNS), sits("b", **DONE)], "Running", "True", Reason.SCHEDULED),
        ([sits("a", phase=PodPhase.RUNNING), sits("b", phase=PodPhase.SUCCEEDED)], "Running", "True", Reason.SCHEDULED),
        ([sits("a", **DONE), sits("b", **DONE)], "Finished", "True", Reason.SCHEDULED),
        ([sits("a", **DONE), sits("b", **DONE), member("c")], "Pending", "False", Reason.NOT_ENOUGH_MEMBERS),
        ([sits("a", **RUNS), sits("b", phase=PodPhase.FAILED)], "Failed", "False", Reason.NOT_ENOUGH_MEMBERS),
        (
            [sits("a", **RUNS), sits("b", **RUNS), sits("c", phase=PodPhase.FAILED)],
            "Running",
            "True",
            Reason.SCHEDULED,
        ),
    ],
)
def test_phase_and_condition(pods: list[PodInfo], phase: str, status: str, reason: Reason) -> None:
    wanted = of(*pods)
    assert (wanted.phase, wanted.status, wanted.reason) == (phase, status, reason)


WANTED = WantedGroupStatus(
    "Running", 2, 2, 0, 0, "ml/job", "2026-11-21T18:00:00Z", "True", Reason.SCHEDULED, "all well", 3
)


def merged(status: PodGroupStatus, change: dict[str, Any]) -> PodGroupStatus:
    return msgspec.convert(msgspec.to_builtins(status) | change, PodGroupStatus)


def test_everything_at_first_and_nothing_once_it_says_so() -> None:
    change = change_of(WANTED, PodGroupStatus(), NOW)
    assert change == {
        "phase": "Running",
        "scheduled": 2,
        "running": 2,
        "occupiedBy": "ml/job",
        "scheduleStartTime": "2026-11-21T18:00:00Z",
        "conditions": [
            {
                "type": "Scheduled",
                "status": "True",
                "reason": "Scheduled",
                "message": "all well",
                "lastTransitionTime": "2026-11-21T18:00:00Z",
                "observedGeneration": 3,
            }
        ],
    }
    assert change_of(WANTED, merged(PodGroupStatus(), change), NOW + 9) is None


def test_what_others_wrote_stays() -> None:
    other = StoredCondition("Quota", "True", "Fits")
    change = change_of(WANTED, PodGroupStatus(conditions=(other,), occupied_by="x", schedule_start_time="t"), NOW)
    assert change is not None and change.keys() == {"phase", "scheduled", "running", "conditions"}
    assert [one["type"] for one in change["conditions"]] == ["Quota", "Scheduled"]


def test_a_replica_that_is_behind_leaves_a_later_version_alone() -> None:
    later = StoredCondition("Scheduled", "False", observed_generation=4)
    assert change_of(WANTED, PodGroupStatus(conditions=(later,)), NOW) is None


def test_fields_that_the_server_drops_are_not_written_again() -> None:
    status = PodGroupStatus(phase="Running", running=2, occupied_by="ml/job", schedule_start_time="t")
    dropped = frozenset({"scheduled", "conditions"})
    assert change_of(WANTED, status, NOW, dropped=dropped) is None
    assert change_of(replace(WANTED, running=1), status, NOW, dropped=dropped) == {"running": 1}


@pytest.mark.parametrize(("phase", "is_written"), [("Finished", False), ("Failed", False), ("Running", True)])
def test_what_became_of_pods_that_were_cleaned_up_stays(phase: str, is_written: bool) -> None:
    assert of().is_empty
    assert (change_of(of(), PodGroupStatus(phase=phase), NOW) is not None) == is_written
