from __future__ import annotations

import pytest

from forecast.service_key import Owner
from kube.objects.constraints import Operator, Requirement
from placement.index import pods_by_labels
from placement.index.domain_sums import PodsByRow
from placement.index.pods_by_labels import PodGroups
from tests.placement.small_cluster import chosen, pod_of

ALL = chosen()


def by_row(pods: PodsByRow) -> dict[int, int]:
    found: dict[int, int] = {}
    for row, amount in zip(pods.rows.tolist(), pods.amounts.tolist(), strict=True):
        found[row] = found.get(row, 0) + amount
    return {row: amount for row, amount in found.items() if amount}


@pytest.mark.parametrize("few", [0, 256], ids=["one pass over all", "group by group"])
@pytest.mark.parametrize("leaving", [True, False])
def test_many_groups_are_summed_as_few_are(monkeypatch: pytest.MonkeyPatch, few: int, leaving: bool) -> None:
    monkeypatch.setattr(pods_by_labels, "_FEW", few)
    groups = PodGroups()
    for i in range(300):
        groups.count(i % 7, pod_of(f"p{i}", {"app": f"a{i % 50}"}, terminating=i % 3 == 0), 1)
    for i in range(0, 300, 2):
        groups.count(i % 7, pod_of(f"p{i}", {"app": f"a{i % 50}"}, terminating=i % 3 == 0), -1)
    expected: dict[int, int] = {}
    for i in range(1, 300, 2):
        if (leaving or i % 3) and i % 50 != 9:
            expected[i % 7] = expected.get(i % 7, 0) + 1
    others = chosen(Requirement("app", Operator.NOT_IN, ("a9",)))
    assert by_row(groups.pods_of(groups.chosen_by(others, "default"), leaving=leaving)) == expected


def test_nothing_is_left_of_pods_that_went() -> None:
    groups = PodGroups()
    pods = [
        pod_of(f"p{i}", {"pod": f"p{i}"}, owner=Owner("StatefulSet", "db"), owner_uid=f"uid-{i}") for i in range(300)
    ]
    for round_ in range(3):
        for i, pod in enumerate(pods):
            groups.count(i % 5, pod, 1)
        assert (len(groups), len(groups.owned)) == (300, 300)
        for i, pod in enumerate(pods):
            groups.count(i % 5, pod, -1)
        assert (len(groups), len(groups.owned)) == (0, 0), round_
        assert not len(groups.chosen_by(ALL, "default"))
    assert groups._n_cells == 300 and len(groups._groups) == 300  # used again, not made anew


def test_only_pods_of_spreading_controllers_are_kept_by_owner() -> None:
    groups = PodGroups()
    groups.count(0, pod_of("a", owner=Owner("ReplicaSet", "web"), owner_uid="rs"), 1)
    groups.count(0, pod_of("b", owner=Owner("DaemonSet", "agent"), owner_uid="ds"), 1)
    groups.count(0, pod_of("c", owner=Owner("ReplicaSet", "web"), owner_uid="rs", terminating=True), 1)
    assert by_row(groups.owned.pods_of("rs")) == {0: 1}
    assert by_row(groups.owned.pods_of("ds")) == {}
