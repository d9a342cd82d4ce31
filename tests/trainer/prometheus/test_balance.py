"""Figures that cannot be true together: of pods and nodes, of requests and nodes, of listed and measured pods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from base.arrays import Floats
from base.errors import InputError
from forecast.resources import CPU, MEMORY, NETWORK, RESOURCES
from forecast.usage_limits import bounded_by_nodes
from tests.trainer.prometheus.reading import N_TICKS, NODES, facts, pods_on_nodes
from trainer.prometheus.day_consistency import check_places, check_pods, unowned_pods
from trainer.prometheus.day_remarks import (
    nodes_below_their_pods,
    pods_against_nodes,
    requests_against_nodes,
    requests_beyond_nodes,
)


def usage(value: float = 1.0) -> Floats:
    return np.full((3, N_TICKS, len(RESOURCES)), value)


def test_pods_that_use_a_part_of_their_nodes_are_nothing_to_mention() -> None:
    for share in (0.02, 0.5, 1.0, 1.2):
        assert list(pods_against_nodes(usage(share), usage(), 12)) == []
    assert list(pods_against_nodes(usage(0.0), usage(0.0), 12)) == []
    assert list(pods_against_nodes(usage(0.0), usage(), 9)) == []  # too few to judge


@pytest.mark.parametrize(("resource", "share"), [(CPU, 0.001), (CPU, 0.0), (MEMORY, 1 / 1024), (NETWORK, 0.0)])
def test_pods_that_use_next_to_nothing_have_another_unit_or_a_gauge(resource: int, share: float) -> None:
    pods = usage()
    pods[:, :, resource] = share
    [remark] = pods_against_nodes(pods, usage(), 12)
    assert f"query pod_{RESOURCES[resource].name} seems to answer in another unit" in remark.text


def test_nodes_in_another_unit_than_the_others_are_named() -> None:
    whole = usage()
    whole[1, :, MEMORY] = 1 / 1024
    [remark] = nodes_below_their_pods(NODES, usage(), whole)
    assert f"on 1 of 3 nodes ({NODES[1]})" in remark.text and "node_memory" in remark.text
    assert list(nodes_below_their_pods(NODES, usage(3.0), usage())) == []  # page cache may be a multiple


def test_pods_that_use_more_cores_than_their_nodes_are_counted_twice() -> None:
    [remark] = pods_against_nodes(usage(2.0), usage(), 12)  # of memory and network that may be
    assert remark.cause == "busy pods: cpu" and "use 2.0 times the cores that their nodes use" in remark.text


def test_idle_nodes_under_busy_pods_are_told() -> None:
    nodes = usage()
    nodes[:, :, CPU] = 0.0
    [remark] = pods_against_nodes(usage(), nodes, 12)
    assert "query node_cpu says 0 of every node while pods use some" in remark.text


def test_requests_that_fit_are_nothing_to_mention() -> None:
    assert requests_against_nodes(pods_on_nodes(), np.full((12, 2), 2.0**27), np.full((3, 2), 2.0**30), NODES) == []


@pytest.mark.parametrize(
    ("cpu", "memory", "text"),
    [
        (400.0, 4e8, "requests for cpu add up to 421.1 times what a node can give: they must be in cores"),
        (0.4, 4e8 / 1024, "half of the requests for memory are below 390,625 bytes"),
        (np.nan, np.nan, "none of 12 pods has requests"),
    ],
)
def test_requests_in_another_unit_and_none_at_all_are_told(cpu: float, memory: float, text: str) -> None:
    requests, limits = np.tile([cpu, memory], (12, 1)), np.tile([3.8, 15e9], (3, 1))
    [remark] = requests_against_nodes(pods_on_nodes(), requests, limits, NODES)
    assert text in remark.text


def test_pods_of_which_none_is_measured_while_others_are_were_renamed_by_a_scrape() -> None:
    pods, none = pods_on_nodes(), np.zeros((12, N_TICKS), dtype=bool)
    with pytest.raises(
        InputError, match=r"lists 12 pods \(shop/pod-00.*usage is of others \(monitoring/kubelet\).*hono"
    ):
        check_pods(pods, none, {("monitoring", "kubelet")})
    check_pods(pods, none, set())
    none[0, 0] = True
    check_pods(pods, none, {("monitoring", "kubelet")})


def test_a_cluster_in_which_no_pod_has_an_owner_has_lost_a_label() -> None:
    assert unowned_pods(pods_on_nodes()) == []
    [remark] = unowned_pods(pods_on_nodes(kind="Pod"))
    assert "none of 12 pods has an owner" in remark.text


def test_pods_on_one_node_of_several_are_refused_and_those_of_a_cluster_of_one_are_not() -> None:
    pods = pods_on_nodes()
    check_places(pods, NODES, facts())
    on_one = replace(pods, lives=tuple(replace(life, node="n1") for life in pods.lives))
    check_places(on_one, {"n1"}, facts())  # whatever machines outside are measured
    with pytest.raises(InputError, match=r"puts all 12 pods on n1, while 3 nodes are measured .* honorLabels"):
        check_places(on_one, NODES, facts())
    overwritten = {f"10.0.0.{number}": ("n1",) for number in range(3)}
    with pytest.raises(InputError, match="honorLabels"):
        check_places(on_one, {"n1"}, replace(facts(), nodes_of=overwritten))


def test_pods_that_request_more_than_a_node_are_named() -> None:
    asked = np.full((12, 2), 2.0)
    asked[[3, 5], CPU] = 1e18
    bounded = bounded_by_nodes(asked, np.full((3, 2), 32.0), np.zeros(12, dtype=np.int64))
    assert bounded.max() == 32.0
    [remark] = requests_beyond_nodes(pods_on_nodes(), asked, bounded)
    assert remark.text.startswith("2 pods request more than their node can give (") and remark.wrong
    assert requests_beyond_nodes(pods_on_nodes(), bounded, bounded) == []
