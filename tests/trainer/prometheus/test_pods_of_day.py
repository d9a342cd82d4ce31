"""Lives of pods from kube_pod_info."""

from __future__ import annotations

import numpy as np
import pytest

from base.errors import InputError
from forecast.service_key import NO_OWNER, Owner
from trainer.prometheus.matrix import Matrix
from trainer.prometheus.pods_of_day import owners_of, pods_of_day


def _info(*series: tuple[str, str, str, str]) -> Matrix:
    """(pod, uid, node, ticks as 0 and 1) of the namespace shop."""
    labels, number, ticks = [], [], []
    for index, (pod, uid, node, there) in enumerate(series):
        labels.append({"namespace": "shop", "pod": pod, "uid": uid, "node": node})
        found = [tick for tick, one in enumerate(there) if one == "1"]
        ticks += found
        number += [index] * len(found)
    return Matrix(tuple(labels), np.array(number), np.array(ticks), np.ones(len(ticks)))


def _nodes(part: Matrix, n_ticks: int) -> list[str]:
    pods = pods_of_day([part], n_ticks, {})
    return [pods.lives[life].node if life >= 0 else "-" for life in pods.life[0]]


def test_the_life_that_began_latest_counts_whatever_the_order() -> None:
    lives = [("db-0", "1", "n1", "111100"), ("db-0", "2", "n2", "001111")]
    assert _nodes(_info(*lives), 6) == _nodes(_info(*lives[::-1]), 6) == ["n1", "n1", "n2", "n2", "n2", "n2"]


def test_a_series_that_lingers_beyond_the_next_life_does_not_come_back_before_it_ends() -> None:
    assert _nodes(_info(("db-0", "1", "n1", "111111"), ("db-0", "2", "n2", "001100")), 6) == [
        "n1", "n1", "n2", "n2", "n1", "n1",
    ]  # fmt: skip


def test_of_two_that_were_there_from_the_start_the_one_that_stays_counts() -> None:
    assert _nodes(_info(("db-0", "2", "n2", "1111"), ("db-0", "1", "n1", "1000")), 4) == ["n2"] * 4


def test_pieces_of_one_life_are_one() -> None:
    first, second = _info(("a", "1", "n1", "1100")), _info(("a", "1", "n1", "0011"))
    pods = pods_of_day([second, first], 4, {})
    assert len(pods.lives) == 1 and (pods.life == 0).all()


def test_known_life_looks_back_then_ahead() -> None:
    pods = pods_of_day([_info(("a", "1", "n1", "0100100"), ("a", "2", "n2", "0000010"))], 7, {})
    nodes = [pods.lives[life].node for life in pods.known_life()[0]]
    assert nodes == ["n1", "n1", "n1", "n1", "n1", "n2", "n2"]
    assert pods.silent.tolist() == [True, False, True, True, False, False, True]
    assert pods.lives[pods.last_life()[0]].uid == "2"


def test_many_pods_under_one_name_are_lost_labels() -> None:
    with pytest.raises(InputError, match=r"4 pods at once under the name shop/ksm.*honorLabels: true"):
        pods_of_day([_info(*(("ksm", str(uid), "n1", "01") for uid in range(4)))], 2, {})


def test_a_missing_label_is_told() -> None:
    lacking = Matrix(({"namespace": "shop", "pod": "a"},), np.zeros(1, int), np.zeros(1, int), np.ones(1))
    with pytest.raises(InputError, match=r"without the label node .*namespace, pod.*queries\.pod_info"):
        pods_of_day([lacking], 1, {})


def test_owners() -> None:
    def vector(**labels: str) -> Matrix:
        return Matrix(({"namespace": "shop", **labels},), np.zeros(1, int), np.zeros(1, int), np.ones(1))

    sets = vector(replicaset="web-1", owner_kind="Deployment", owner_name="web")
    jobs = vector(job_name="once", owner_kind="<none>", owner_name="<none>")
    assert owners_of(sets, jobs) == {
        ("shop", "ReplicaSet", "web-1"): Owner("Deployment", "web"),
        ("shop", "Job", "once"): NO_OWNER,
    }
