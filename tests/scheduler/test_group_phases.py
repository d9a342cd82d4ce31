from __future__ import annotations

from typing import Any

from placement.pod_groups.pod_group import PodGroupInfo, PodGroupStatus
from scheduler.group_phases import GroupPhases


class _Sink:
    def __init__(self) -> None:
        self.told: list[Any] = []

    def replace(self, objects: Any) -> None:
        self.told.append([group.name for group in objects])

    def put(self, obj: PodGroupInfo) -> None:
        self.told.append(("put", obj.name))

    def delete(self, obj: PodGroupInfo) -> None:
        self.told.append(("delete", obj.name))

    def absent(self) -> None:
        self.told.append("absent")


def _group(name: str, phase: str = "") -> PodGroupInfo:
    return PodGroupInfo("jobs", name, f"uid-{name}", 1, 0.0, status=PodGroupStatus(phase=phase))


def test_groups_are_counted_by_phase_and_passed_on() -> None:
    sink = _Sink()
    phases = GroupPhases(sink)
    assert phases.counts() == {}
    phases.replace([_group("a"), _group("b", "Running")])
    assert phases.counts() == {"Pending": 1, "Running": 1}
    phases.put(_group("a", "Scheduled"))
    phases.put(_group("c", "Scheduled"))
    assert phases.counts() == {"Scheduled": 2, "Running": 1}
    phases.delete(_group("b"))
    phases.delete(_group("never-seen"))
    assert phases.counts() == {"Scheduled": 2}
    assert sink.told == [["a", "b"], ("put", "a"), ("put", "c"), ("delete", "b"), ("delete", "never-seen")]
    phases.replace([])
    assert phases.counts() == {}
    phases.absent()
    assert sink.told[-1] == "absent"
