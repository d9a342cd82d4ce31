"""The directory of gangs beside tables as they change: what the queue, the cycle and preemption are told."""

from __future__ import annotations

import pytest

from kube.objects.objects import PodPhase
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.status import Code, Status
from scheduler.gangs.gang_gate import UNTRIED, Reason
from scheduler.gangs.gang_plugin import Gang
from scheduler.loop_settings import GangOptions
from testing.constants import with_constants
from tests.scheduler.gangs.made_up import NOW, TRAIN, Scene, group, member


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_groups_are_read_first() -> None:
    scene = Scene(synced=False)
    scene.put(member("a"))
    assert scene.gate() == "waits until PodGroup ml/train has been read"
    scene.directory.put_group(group(1, name="other"))
    assert scene.gate() == "waits until PodGroup ml/train has been read"
    scene.told.clear()
    scene.directory.replace_groups([])
    assert scene.gate() == "PodGroup ml/train does not exist" and scene.told == [TRAIN]


def test_members_come_one_by_one(scene: Scene) -> None:
    scene.put(member("a"))
    assert scene.directory.gate(member("a")) == Status(Code.UNRESOLVABLE, "Gang", "PodGroup ml/train does not exist")
    scene.directory.put_group(group(4, {"ps": 1, "worker": 2}))
    assert scene.gate() == (
        "waits for members: 1 of 4 pods of PodGroup train exist, role ps 0 of 1, role worker 0 of 2"
    )  # fmt: skip
    scene.put(*(member(f"w{n}", "worker") for n in range(3)))
    assert scene.gate() == "waits for members: role ps 0 of 1 of PodGroup train"
    scene.told.clear()
    scene.put(member("ps", "ps"))
    assert scene.gate() == "" and scene.told == [TRAIN]
    scene.cluster.delete_pod("ps")
    assert scene.gate() != "" and scene.told == [TRAIN] * 2


def test_a_group_that_does_not_fit_lets_others_go_first() -> None:
    scene = Scene(options=with_constants(GangOptions(), timeout=60, pause=30))
    scene.directory.put_group(group(2))
    scene.put(member("a"), member("b"))
    fail = scene.directory.attempt_failed
    fail(TRAIN, "1 of 2 members fit", "0/9 nodes are available: 9 Insufficient cpu")
    scene.now += 59
    fail(TRAIN, "1 of 2 members fit")
    assert scene.gate() == ""
    scene.told.clear()
    scene.now += 1
    fail(TRAIN, "1 of 2 members fit", "0/9 nodes are available: 9 Insufficient cpu")
    assert scene.gate() == (
        "PodGroup train could not be placed within 60 s, others go first and it is tried every 30 s: "
        "1 of 2 members fit: 0/9 nodes are available: 9 Insufficient cpu"
    )
    assert scene.told == [TRAIN]
    scene.now += 29.9
    scene.directory.tick()
    assert scene.gate() and scene.told == [TRAIN]
    scene.now += 0.1
    scene.directory.tick()
    assert scene.gate() == "" and scene.told == [TRAIN] * 2
    fail(TRAIN, "1 of 2 members fit")
    assert scene.gate() and scene.told == [TRAIN] * 3


def test_a_timeout_that_passes_between_two_attempts_is_noticed_at_the_next_tick() -> None:
    scene = Scene(options=with_constants(GangOptions(), timeout=60, pause=30))
    late: list[str] = []
    scene.directory.late_listeners.append(late.append)
    scene.directory.replace_groups([group(2), group(1, name="soon", timeout_seconds=5.0)])
    scene.put(member("a"), member("b"), member("s", of="soon"))
    for key in (TRAIN, "ml/soon"):
        scene.directory.attempt_failed(key, "1 of 2 members fit")
    scene.told.clear()
    reports = {}
    for second in range(1, 92):
        scene.now += 1
        scene.directory.tick()
        report = scene.directory.report(TRAIN)
        assert report is not None
        reports[second] = (report.verdict.reason, report.verdict.passes, [*late])
    assert reports[4][2] == [] and reports[5][2] == ["ml/soon"]
    assert reports[59] == (Reason.UNSCHEDULABLE, True, ["ml/soon"])
    assert reports[60] == (Reason.TIMEOUT, False, ["ml/soon", TRAIN])
    assert reports[89] == (Reason.TIMEOUT, False, ["ml/soon", TRAIN])
    assert reports[90] == (Reason.TIMEOUT, True, ["ml/soon", TRAIN]), "tried again after the pause"
    assert scene.told.count(TRAIN) == 2, "the gate closed once and opened once"


def test_the_longest_wait_is_that_of_the_gang_that_was_first_tried_in_vain(scene: Scene) -> None:
    scene.directory.put_group(group(1))
    scene.directory.put_group(group(1, name="other"))
    scene.put(member("a"), member("b", of="other"))
    scene.now += 100
    assert scene.directory.longest_wait() == 0, "complete gangs that nobody has tried yet are no news"
    scene.directory.attempt_failed(TRAIN, "no")
    scene.now += 30
    scene.directory.attempt_failed("ml/other", "no")
    scene.directory.attempt_failed(TRAIN, "no")
    scene.now += 5
    assert scene.directory.longest_wait() == 35
    scene.directory.scheduled(TRAIN, 1)
    assert scene.directory.longest_wait() == 5
    scene.cluster.delete_pod("b")
    assert scene.directory.longest_wait() == 0


@pytest.mark.parametrize("how", ["spec", "anew", "added", "ungated", "incomplete", "scheduled", "seated"])
def test_a_change_ends_a_pause(scene: Scene, how: str) -> None:
    scene.directory.put_group(group(2, timeout_seconds=0.0))
    scene.put(member("a"), member("b"), member("gated", gates=("not-yet",)))
    scene.directory.attempt_failed(TRAIN, "no")
    assert scene.gate()
    scene.told.clear()
    match how:
        case "added":
            scene.put(member("c"))
        case "ungated":
            scene.put(member("gated"))
        case "spec":
            scene.directory.put_group(group(1, timeout_seconds=0.0))
        case "anew":
            scene.directory.put_group(group(2, timeout_seconds=0.0, uid="another"))
        case "incomplete":
            scene.cluster.delete_pod("a")
            scene.put(member("c"))
        case "scheduled":
            scene.directory.scheduled(TRAIN, 2)
        case "seated":
            scene.put(member("a", node="n1"), member("b", node="n1"))
    assert scene.gate() == ""
    assert scene.told[-1] == TRAIN


def test_report(scene: Scene) -> None:
    scene.directory.put_group(group(3))
    scene.put(
        member("a", node="n1", owner="job-b", phase=PodPhase.RUNNING),
        member("b", node="n1", owner="job-a"),
        member("c", phase=PodPhase.FAILED),
        member("e", node="n1", phase=PodPhase.RUNNING, terminating=True),
    )
    report = scene.directory.report(TRAIN)
    assert report is not None and report.complete_since is None and report.owners == ("ml/job-a", "ml/job-b")
    scene.now += 5
    scene.put(member("d"))
    report = scene.directory.report(TRAIN)
    assert report is not None and report.complete_since == NOW + 5
    assert (report.scheduled, report.running, report.failed, report.waiting, report.total) == (2, 1, 1, 1, 5)


@pytest.mark.parametrize("how", ["taken back", "changed", "relisted"])
def test_what_is_only_tried_does_not_end_a_pause(scene: Scene, how: str) -> None:
    pods = [member("a"), member("b")]
    scene.directory.put_group(group(2, timeout_seconds=0.0))
    scene.put(*pods)
    scene.directory.attempt_failed(TRAIN, "no")
    if how == "taken back":
        scene.assume(*pods)
        assert scene.gate() == ""
        scene.cluster.forget_all(["a", "b"])
    elif how == "changed":
        scene.put(member("a", priority=7))
    else:
        scene.cluster.replace_pods([member("a"), member("b")])
        scene.directory.rebuild()
    assert "others go first" in scene.gate()


def test_a_clock_that_is_set_back_ends_a_pause_and_begins_the_timeout_anew() -> None:
    late = UNTRIED.failed(1000.0, "a", timeout=0)
    assert not late.is_paused(900.0, pause=30)
    back = UNTRIED.failed(1000.0, "a", timeout=60).failed(500.0, "b", timeout=60)
    assert not back.is_late and back.failed(560.0, "c", timeout=60).is_late
    assert not back.after(559.9, timeout=60).is_late and back.after(560.0, timeout=60).is_late


@pytest.mark.parametrize(
    ("event", "hint"),
    [
        (ClusterEvent(EventKind.GROUP_CHANGED, group="ml/train"), Hint.QUEUE),
        (ClusterEvent(EventKind.GROUP_CHANGED, group="ml/other"), Hint.SKIP),
        (ClusterEvent(EventKind.GROUP_CHANGED), Hint.SKIP),
        (ClusterEvent(EventKind.UNSCHEDULED_POD_CHANGED, pod=member("a")), Hint.QUEUE),
        (ClusterEvent(EventKind.UNSCHEDULED_POD_CHANGED, pod=member("b")), Hint.SKIP),
        (ClusterEvent(EventKind.NODE_ADDED), Hint.SKIP),
    ],
)
def test_what_may_let_a_pod_in(event: ClusterEvent, hint: Hint) -> None:
    plugin = Gang(Scene().directory)
    assert plugin.hint(member("a"), event) is hint
