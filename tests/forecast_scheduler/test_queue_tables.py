"""Queues of all profiles, put together from settings."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from forecast.service_key import Owner
from kube.objects.objects import ANNOTATION_PREFIX, NodeInfo, PodInfo
from placement.devices.device_demand import GPU_MILLI
from placement.filters.domain import DOMAIN_LABEL
from placement.node_rule_settings import DeviceOptions
from placement.virtual_node_table import Claims
from profiles.job.due_times import latest_starts
from profiles.schedule_settings import ScheduleSettings
from scheduler.queue_tables import OwnNodes, QueueTables, queue_tables
from scheduler.quota_queues.queue_of import QueueOwner
from scheduler.quota_queues.quota_units import ONLINE_FLOW
from tests.placement.small_cluster import node_of, pod_of
from tests.profiles.job.serverless.providers_world import provider_node, real_node
from tests.scorer.scorer_at import LiveScorer

NAMES = {"online": "forecast-scheduler", "gpu": "gpu-scheduler", "job": "job-scheduler"}
ALL = list(NAMES)


def made(**settings: Any) -> tuple[LiveScorer, QueueTables | None]:
    live = LiveScorer(without_model=True)
    of = ScheduleSettings.model_validate({"profiles": ALL, **settings})
    with live.scorer.tables.reading() as cluster:
        nodes, starts = OwnNodes(frozenset({of.domain}), Claims(of.job.serverless)), latest_starts(cluster, "")
        name = of.scheduler_names.get("job")
        return live, queue_tables(live.scorer, of, nodes, DeviceOptions(), due_of=starts.due_of, job_name=name)


def with_queues(**settings: Any) -> tuple[LiveScorer, QueueTables]:
    live, tables = made(**settings)
    assert tables is not None
    return live, tables


def a_pod(profile: str, name: str = "p", **rest: Any) -> PodInfo:
    return replace(pod_of(name), scheduler_name=NAMES[profile], **rest)


def ours(node: NodeInfo) -> NodeInfo:
    return replace(node, labels={**node.labels, DOMAIN_LABEL: "forecast-scheduler"})


@pytest.mark.parametrize("profiles", [["online"], ["online", "gpu"]])
def test_without_jobs_and_settings_there_are_no_queues(profiles: list[str]) -> None:
    assert made(profiles=profiles)[1] is None


def test_queues_take_pods_by_all_that_they_name() -> None:
    _, tables = with_queues()
    assert {profile: tables.name_of(a_pod(profile)) for profile in ALL} == {
        "online": "", "gpu": "", "job": "default/default",
    }  # fmt: skip
    assert {tables.units(None).unit_of(a_pod(profile)).flow for profile in ("online", "gpu")} == {ONLINE_FLOW}
    _, tables = with_queues(
        queues=[
            {"name": "lab", "profiles": ["gpu"], "namespaces": ["lab"], "labels": {"team": "red"}},
            {"name": "asked"},
            {"name": "default", "profiles": ["online", "job"]},
        ]
    )
    red: dict[str, Any] = {"labels": {"team": "red"}, "namespace": "lab"}
    asks = {ANNOTATION_PREFIX + "queue": "lab"}
    assert tables.name_of(a_pod("gpu", **red)) == "lab/lab"
    assert tables.name_of(a_pod("gpu", namespace="lab")) == ""
    assert tables.name_of(a_pod("online", annotations=asks, **red)) == "default/lab", "not open to services"
    assert tables.name_of(a_pod("gpu", annotations={ANNOTATION_PREFIX + "queue": "asked"})) == "asked/default"


@pytest.mark.parametrize("has_own", [False, True])
def test_shares_are_of_own_nodes_or_of_virtual_ones_where_there_are_no_others(has_own: bool) -> None:
    live, tables = with_queues()
    nodes = [ours(provider_node("virtual", "aci", cpu=500.0)), provider_node("theirs", "aci", cpu=500.0)]
    with live.scorer.tables.changing() as cluster:
        for node in nodes + [ours(real_node("own", cpu=8.0))] * has_own:
            cluster.put(node)
    assert tables.shares.total[0] == (8.0 if has_own else 500.0)


def test_cards_count_in_thousandths_and_under_one_name() -> None:
    live, tables = with_queues(queues=[{"name": "cards", "profiles": ["gpu"]}])
    cards = {"nvidia.com/gpu": 4.0, "aliyun.com/gpu-mem": 64.0, "aliyun.com/gpu-count": 4.0}
    has = {"cpu": 100.0, "memory": 1e12, "pods": 100.0, **cards}
    node = ours(replace(node_of("n"), allocatable=has, capacity=has))
    whole = a_pod("gpu", "whole", node="n", namespace="a", requests={"cpu": 1.0, "nvidia.com/gpu": 2.0})
    share = a_pod("gpu", "share", node="n", namespace="b", annotations={GPU_MILLI: "250"})
    memory = a_pod("gpu", "memory", node="n", namespace="c", requests={"aliyun.com/gpu-mem": 8.0})
    with live.scorer.tables.changing() as cluster:
        for one in (node, whole, share, memory):
            cluster.put(one)
    assert tables.shares.resources == ("cpu", "memory", "cards")
    reports = {one.owner: (one.share, one.resource) for one in tables.shares.report()}
    assert reports == {"a": (0.5, "cards"), "b": (0.0625, "cards"), "c": (0.125, "cards")}
    waits = replace(memory, node="", uid="waits")
    assert tables.shares.demand(waits)[2] == 1.0, "which share it gets depends on the node"


@pytest.mark.parametrize("profile", ALL)
def test_any_pod_has_a_latest_start(profile: str) -> None:
    """A pod that ends has to start early enough; one that runs on and on has to start by its deadline."""
    _, tables = with_queues(queues=[{"name": "line", "profiles": ALL, "order": "deadline"}])
    said = {ANNOTATION_PREFIX + "deadline": "1h", ANNOTATION_PREFIX + "expected-run": "10m"}
    ends = a_pod(profile, annotations=said, created=1000.0)
    runs_on = replace(ends, annotations={ANNOTATION_PREFIX + "deadline": "1h"}, owner=Owner("ReplicaSet", "web"))
    assert (tables.due_of(ends), tables.due_of(runs_on)) == (4000.0, 4600.0)
    assert tables.due_of(a_pod(profile)) == math.inf
    assert tables.units(None).unit_of(ends).due == 4000.0


def test_owners_are_reported_with_what_they_have_and_wait_for() -> None:
    live, tables = with_queues(queues=[{"name": "line", "profiles": ["online"], "weight": 2}])
    node = ours(replace(node_of("n"), allocatable={"cpu": 10.0, "memory": 1e12, "pods": 100.0}))
    with live.scorer.tables.changing() as cluster:
        cluster.put(node)
        cluster.put(a_pod("online", "sits", node="n", requests={"cpu": 5.0}))
    waiting = [a_pod("online", f"w{i}", namespace="b") for i in range(3)]
    first, second = tables.reports([*waiting, a_pod("gpu", "unqueued")])
    assert (first.queue, first.owner, first.order, first.weight) == ("line", "b", "drf", 2.0)
    assert (first.running, first.waiting, first.share) == (0, 3, 0.0)
    assert (second.owner, second.running, second.waiting, second.share) == ("default", 1, 0, 0.5)
    assert QueueOwner(second.queue, second.owner) == tables.queue_of.of(a_pod("online"))
