"""What it costs to follow the members of a gang: once for those that change alike, nothing for a confirmation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.gangs.members import Member, Members
from tests.scheduler.gangs.made_up import TRAIN, Scene, group, member

N = 16
POD_IDS = [f"pod-{n}" for n in range(N)]


@pytest.fixture
def scene() -> Scene:
    """N members that wait, and a node."""
    scene = Scene()
    scene.put(member("sits", of="", node="n1"))
    scene.directory.put_group(group(N))
    scene.put(*(member(uid) for uid in POD_IDS))
    return scene


def _seat(scene: Scene) -> None:
    state = scene.cluster.state
    rows = [state.names.index("n1")] * N
    scene.cluster.assume_all([state.pods[uid] for uid in POD_IDS], rows, scene.now + 60)


def _confirm(scene: Scene, uid: str) -> None:
    scene.put(replace(scene.cluster.state.pods[uid], node="n1"))


def test_members_that_get_nodes_together_are_counted_together(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    count = Members.count

    def noted(self: Members, one: Member, number: int) -> None:
        counted.append(number)
        count(self, one, number)

    monkeypatch.setattr(Members, "count", noted)
    _seat(scene)
    assert sorted(counted) == [-N, N]
    report = scene.directory.report(TRAIN)
    assert report is not None and (report.scheduled, report.waiting) == (N, 0)


def test_a_confirmation_leaves_nothing_to_say_of_a_gang_that_was_not_tried_in_vain(scene: Scene) -> None:
    _seat(scene)
    assert scene.directory.take_changed() == {TRAIN}
    _confirm(scene, POD_IDS[0])
    assert scene.directory.take_changed() == set()
    scene.cluster.forget(POD_IDS[1])
    assert scene.directory.take_changed() == {TRAIN}


def test_the_last_confirmation_ends_the_attempts_of_a_gang_that_was_tried_in_vain(scene: Scene) -> None:
    scene.directory.attempt_failed(TRAIN, "no room")
    _seat(scene)
    for uid in POD_IDS[1:]:
        _confirm(scene, uid)
    scene.now += 5
    assert scene.directory.longest_wait() == 5
    _confirm(scene, POD_IDS[0])
    assert scene.directory.longest_wait() == 0


def test_counting_anew_is_no_new_member(scene: Scene) -> None:
    scene.directory.attempt_failed(TRAIN, "no room")
    scene.now += 5
    scene.directory.rebuild()
    assert scene.directory.longest_wait() == 5
    scene.put(member("another"))
    assert scene.directory.longest_wait() == 0
