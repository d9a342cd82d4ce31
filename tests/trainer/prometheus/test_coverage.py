"""What some pods and nodes lack while others have it is told once, by resource; what all have is not mentioned."""

from __future__ import annotations

import numpy as np
import pytest

from base.arrays import Floats32
from forecast.resources import CPU, DISK, LOG, MEMORY, NETWORK, RESOURCES
from tests.trainer.prometheus.reading import N_TICKS, NODES, facts, pods_on_nodes
from trainer.prometheus.day_remarks import unknown_of_nodes, unmeasured_pods
from trainer.prometheus.day_tables import Remark, presence
from trainer.prometheus.pods_of_day import PodsOfDay


def said(usage: Floats32, pods: PodsOfDay | None = None) -> list[Remark]:
    pods = pods or pods_on_nodes()
    return unmeasured_pods(pods, presence(pods, np.any(np.isfinite(usage), axis=2)), usage, facts())


def measured() -> Floats32:
    """(n_pods, n_ticks, n_resources) of pods_on_nodes."""
    return np.ones((len(pods_on_nodes().pods), N_TICKS, len(RESOURCES)), dtype=np.float32)


def on_node(name: str) -> list[int]:
    return [row for row, life in enumerate(pods_on_nodes().lives) if life.node == name]


def test_nothing_is_said_of_what_all_have_and_of_what_nobody_has() -> None:
    assert said(measured()) == []
    usage = measured()
    usage[:, :, DISK] = np.nan
    assert said(usage) == []  # the check of the queries says it


@pytest.mark.parametrize("resource", [CPU, MEMORY, DISK, NETWORK])
def test_pods_that_lack_a_resource_are_named_with_their_nodes_and_services(resource: int) -> None:
    usage = measured()
    usage[on_node("n2"), :, resource] = np.nan
    [remark] = said(usage)
    name = RESOURCES[resource].name
    assert remark.cause == f"pods without {name}" and remark.wrong
    assert remark.text.startswith(
        f"4 of 12 running pods: their {name} was never measured, on n2 (containerd://1.7); most of them of shop/"
    )


def test_pods_that_were_never_measured_are_named_once() -> None:
    usage = measured()
    usage[on_node("n2")] = np.nan
    usage[:, :, LOG] = 1.0
    assert [remark.cause for remark in said(usage)] == ["unmeasured pods"]


def test_one_pod_that_cannot_start_is_no_finding() -> None:
    usage = measured()
    usage[0, :, DISK] = np.nan
    assert said(usage) == []


def test_network_of_pods_on_the_host_network_is_not_missed() -> None:
    pods = pods_on_nodes(host_network="n2")
    usage = measured()
    usage[on_node("n2"), :, NETWORK] = np.nan
    assert said(usage, pods) == []


def test_usage_with_holes_is_told_by_its_share_of_the_time() -> None:
    usage = measured()
    usage[:, ::2, CPU] = np.nan
    [remark] = said(usage)
    assert "cpu of running pods is measured in 50% of the time only" in remark.text


def test_the_beginning_of_short_pods_is_no_hole() -> None:
    pods = pods_on_nodes()
    pods.life[:, 2:] = -1
    usage = measured()
    usage[:, 0], usage[:, 2:] = np.nan, np.nan
    assert said(usage, pods) == []


def test_nodes_of_which_no_pod_logs_have_no_collector() -> None:
    usage = measured()
    usage[on_node("n3"), :, LOG] = np.nan
    [remark] = said(usage)
    assert "no log bytes of any pod on 1 of 3 nodes" in remark.text and "n3" in remark.text


def test_nodes_that_lack_a_resource_a_capacity_or_allocatable_are_named() -> None:
    usage = np.ones((3, N_TICKS, len(RESOURCES)), dtype=np.float32)
    capacity, allocatable = np.ones((3, len(RESOURCES))), np.ones((3, 2))
    assert list(unknown_of_nodes(NODES, usage, capacity, allocatable, NODES)) == []
    usage[1, :, DISK] = capacity[2, CPU] = allocatable[0] = np.nan
    found = {remark.cause: remark.text for remark in unknown_of_nodes(NODES, usage, capacity, allocatable, NODES)}
    assert found.keys() == {"nodes without disk", "nodes without capacity", "nodes without allocatable"}
    assert found["nodes without disk"].startswith("disk of 1 of 3 nodes (n2) is not measured")
    assert found["nodes without capacity"].startswith("the capacity of 1 of 3 nodes (n3) is unknown")
    assert "of 1 of 3 nodes (n1) is unknown" in found["nodes without allocatable"]
