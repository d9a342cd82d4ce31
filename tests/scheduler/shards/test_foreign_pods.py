"""Which events of pods a replica leaves out: each waiting pod has to be followed by the one whose turn it is."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, cast

import msgspec
import pytest
from kubernetes.client import ApiClient

from forecast.service_key import Owner
from kube.leader_election.lease_set import LeaseSet
from placement.machine_groups.membership import BORROW
from placement.node_rule_settings import NodeRuleOptions
from profiles.schedule_settings import ScheduleSettings
from profiles.schedule_tables import schedule_tables
from scheduler.shard_tables import ShardLeases, ShardTables
from scheduler.shards.assignment import dispatcher
from scheduler.shards.passing_on import PASSED_ON
from testing.objects import node_info, pod_info
from testing.watch_lines import pod_line
from tests.scorer.scorer_at import LiveScorer

HOLDERS = {0: "a", 1: "b", 2: "c"}
SHARED = {"leader_election": {"enabled": True}, "shards": {"enabled": True, "count": 3}}
NAME, JOB = "forecast-scheduler", "job-scheduler"
UNIT = pod_info("pod", scheduler_name=NAME, owner=Owner("ReplicaSet", "web"), owner_uid="web")


class Held:
    """Stands for the Leases of one replica, which owns one shard."""

    def __init__(self, me: str) -> None:
        self.identity = me

    def holds(self, name: str) -> bool:
        return HOLDERS.get(int(name.rsplit("-", 1)[1])) == self.identity


def replica(me: str, *, leads: bool = False, **settings: Any) -> ShardTables:
    made = ScheduleSettings.model_validate(SHARED | settings)
    held = ShardLeases(cast(LeaseSet, Held(me)), cast(ApiClient, None), lambda: leads)
    tables = schedule_tables(LiveScorer(without_model=True).scorer, made, NodeRuleOptions(), None, held).shards
    assert tables is not None
    tables.responsibility.use(dispatcher(HOLDERS, {}))
    tables.ownership.use([number for number, holder in HOLDERS.items() if holder == me])
    return tables


def line(
    annotations: Mapping[str, str] | None = None, *, event: str = "ADDED", scheduler: str = NAME, node: str = ""
) -> bytes:
    body: dict[str, Any] = msgspec.json.decode(pod_line(event, UNIT, 5, node=node))
    body["object"]["metadata"]["annotations"] = dict(annotations or {})
    body["object"]["spec"]["schedulerName"] = scheduler
    return f'{{"type":"{event}","object":'.encode() + msgspec.json.encode(body["object"]) + b"}"


def following(lines: bytes, leader: str = "") -> set[str]:
    return {me for me in "abc" if not _unchanged(me, me == leader).foreign.is_foreign(lines)}


@cache
def _unchanged(me: str, leads: bool) -> ShardTables:
    return replica(me, leads=leads)


@pytest.mark.parametrize("tries", [0, 1])
def test_a_pod_is_followed_by_the_replica_whose_turn_it_is(tries: int) -> None:
    turn = dispatcher(HOLDERS, {}).in_order(f"owner:{UNIT.namespace}/web")[tries]
    assert following(line({PASSED_ON: str(tries)} if tries else {})) == {turn}


@pytest.mark.parametrize("said", ["2", "9", "1@7"])
@pytest.mark.parametrize("leader", "abc")
def test_a_pod_that_has_come_to_the_leader_is_followed_by_it(said: str, leader: str) -> None:
    """It may have tried none of the pod's unit before, and follow no other pods of others."""
    assert following(line({PASSED_ON: said}), leader) == {leader}


def test_a_pod_that_only_the_leader_may_decide_about_is_followed_by_it() -> None:
    """What it is to be placed by cannot be seen at its affinity or its volumes."""
    turn = dispatcher(HOLDERS, {}).in_order(f"owner:{UNIT.namespace}/web")[0]
    leader = next(me for me in "abc" if me != turn)

    assert replica(leader, leads=True).foreign.is_foreign(line())
    assert not replica(leader, leads=True).foreign.is_foreign(line({BORROW: "true"}))
    assert not replica(leader, leads=True, profiles=["online", "job"]).foreign.is_foreign(line(scheduler=JOB))
    assert replica(leader, profiles=["online", "job"]).foreign.is_foreign(line(scheduler=JOB))


def test_pods_on_own_nodes_are_followed_and_those_on_nodes_of_others_are_not() -> None:
    tables = replica("a", leads=True)
    cluster = tables.ownership._cluster
    for name in ("node-0", "node-1"):
        cluster.put(node_info(name, labels={"forecast-scheduler.io/shard": name[-1]}))
    assert not tables.foreign.is_foreign(line(event="MODIFIED", node="node-0"))
    assert tables.foreign.is_foreign(line(event="MODIFIED", node="node-1"))
    assert not tables.foreign.is_foreign(line(event="MODIFIED", node="unknown"))


def test_what_the_tables_know_is_never_left_out() -> None:
    """Neither its binding by another replica, nor its end."""
    tables = replica("a")
    cluster = tables.ownership._cluster
    cluster.put(node_info("node-1", labels={"forecast-scheduler.io/shard": "1"}))
    assert tables.foreign.is_foreign(line(event="DELETED", node="node-1"))
    cluster.put(UNIT)
    assert not tables.foreign.is_foreign(line(event="MODIFIED", node="node-1"))
    assert not tables.foreign.is_foreign(line(event="DELETED", node="node-1"))
