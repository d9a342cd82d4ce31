"""Which nodes are overcommitted, since when, why, and how often that was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.overcommit.overcommit import OvercommitCause
from tests.scheduler.overcommit.nodes import Scene, node, pod, unanswered


def full() -> Scene:
    """A node of 4 cores with pods of 4 cores, seen while they fit."""
    scene = Scene([node()])
    scene.put(*(pod(f"p{i}") for i in range(4)))
    assert scene.after(0) == []
    return scene


def test_a_clock_that_is_set_back_delays_and_no_more() -> None:
    scene = full()
    scene.put(pod("one too many"))
    scene.after(0)
    assert scene.after(-500) == [] and scene.after(1) == ["n"]


@pytest.mark.parametrize(
    ("domain", "cause"),
    [
        (None, OvercommitCause.SHARED),
        ("", OvercommitCause.SHARED),
        ("ours", OvercommitCause.OWN),
        ("batch", OvercommitCause.SHARED),
        ("theirs", None),
    ],
)
def test_by_domain(domain: str | None, cause: OvercommitCause | None) -> None:
    scene = Scene([node(domain=domain)], domain="ours", shared=["", "batch"])
    scene.put(pod("large", cpu=5))
    scene.after(0)
    scene.after(1)
    assert scene.watch.counts == ({} if cause is None else {cause: 1})


def test_an_assumed_pod_does_not_count_before_it_is_bound() -> None:
    scene = full()
    waiting = pod("assumed", on="")
    scene.put(waiting)
    scene.cluster.assume(waiting, "n", scene.now + 60)
    assert scene.after(0) == [] and scene.after(5) == []
    scene.put(replace(waiting, node="n", scheduled=scene.now))
    assert scene.after(0) == [] and scene.after(1) == ["n"]


def test_a_resize_that_the_kubelet_defers_overcommits_nothing() -> None:
    scene = full()
    scene.put(pod("p0", cpu=5, set_aside={"cpu": 1.0}))
    assert scene.after(0) == [] and scene.after(60) == []
    scene.put(pod("p0", cpu=5))
    assert scene.after(0) == [] and scene.after(1) == ["n"], "it was granted"


def test_a_pod_with_a_node_of_its_creators_choice_counts_once_its_kubelet_has_admitted_it() -> None:
    scene = full()
    scene.put(unanswered("named", bound_by_scheduler=False))
    assert scene.after(0) == [] and scene.after(3600) == []
    scene.put(pod("named"))
    assert scene.after(0) == [] and scene.after(1) == ["n"]


@pytest.mark.parametrize(
    ("requests", "excess"),
    [
        ({"memory": 2.0**34 + 1}, {"memory": 1}),
        ({"example.com/gpu": 3.0}, {"example.com/gpu": 1}),
        ({"unknown": 3.0}, None),  # nothing that kube-scheduler counts
        ({"cpu": 4.0, "memory": 2.0**34, "example.com/gpu": 2.0}, None),
    ],
)
def test_per_resource_as_the_filter_counts(requests: dict[str, float], excess: dict[str, int] | None) -> None:
    scene = Scene([node(gpu=2)])
    scene.put(pod("p", requests=requests))
    scene.after(0)
    assert scene.after(1) == (["n"] if excess else [])
    assert [one.excess for one in scene.told] == ([excess] if excess else [])


def test_a_node_that_became_smaller() -> None:
    scene = full()
    scene.put_node(node(cpu=3))
    scene.after(0)
    assert scene.after(1) == ["n"]
    assert scene.watch.counts == {OvercommitCause.SHRUNK: 1}
    scene.put(pod("p4"))  # bound, although nothing was left even before
    assert scene.after(0) == ["n"]
    assert scene.watch.counts == {OvercommitCause.SHRUNK: 1, OvercommitCause.SHARED: 1}


def test_a_device_plugin_that_restarts_while_we_start() -> None:
    part = replace(node(gpu=1), capacity=node(gpu=2).capacity)
    for seen in (node(gpu=0), part):
        scene = Scene([seen])
        scene.put(pod("trains", requests={"example.com/gpu": 2.0}))
        scene.after(0)
        scene.after(1)
        assert scene.watch.counts == {OvercommitCause.SHRUNK: 1}
