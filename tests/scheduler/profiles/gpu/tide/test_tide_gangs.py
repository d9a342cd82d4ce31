"""How far a training may shrink whose pods are a gang."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kube.objects.objects import PodInfo
from placement.pod_groups.labels import GROUP_LABEL
from scheduler.profiles.gpu.tide.situation import gang_mistake, least_of_gang, least_with_gang
from tests.scheduler.profiles.gpu.tide.tide_world import trainer


class Gang:
    """The only one."""

    def __init__(self, minimum: int, sitting: Sequence[PodInfo] = (), waiting: Sequence[PodInfo] = ()) -> None:
        self._minimum, self._sitting, self._waiting = minimum, sitting, waiting

    def minimum(self, group: str) -> int:
        return self._minimum if group == "lab/gang" else 0

    def sitting(self, group: str) -> Sequence[PodInfo]:
        return self._sitting

    def waiting(self, group: str) -> Sequence[PodInfo]:
        return self._waiting


def workers(n: int, of: str = "train") -> list[PodInfo]:
    return [trainer(k, "node-0", of=of, labels={GROUP_LABEL: "gang"}) for k in range(n)]


def test_what_others_have_in_the_gang_need_not_be_ours() -> None:
    mine, others = workers(6), workers(2, of="launcher")
    assert least_of_gang(Gang(5, mine), mine) == 5
    assert least_of_gang(Gang(5, [*mine, others[0]], [others[1]]), mine) == 3
    assert least_of_gang(Gang(1, [*mine, *others]), mine) == 0
    assert least_of_gang(Gang(5, mine), [replace(pod, labels={}) for pod in mine]) == 0


@pytest.mark.parametrize(
    ("gang", "least", "most", "expected"), [(0, 2, 8, 2), (4, 2, 8, 4), (4, 5, 8, 5), (9, 2, 8, 8), (4, 0, 8, 4)]
)
def test_the_gang_raises_the_least_and_never_the_most(gang: int, least: int, most: int, expected: int) -> None:
    assert least_with_gang(gang, least, most) == expected


def test_what_does_not_go_together_is_told() -> None:
    assert not gang_mistake(4, 4, 8) and not gang_mistake(4, None, 8) and not gang_mistake(0, 0, 0)
    assert "min-replicas is 2, and its PodGroup needs 4" in gang_mistake(4, 2, 8)
    assert "cannot run" in gang_mistake(9, 2, 8)
