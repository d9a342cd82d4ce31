"""The next pod of a service goes to the node that a RebalancePlan keeps for it, and no further one does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cluster.tables.changes import PodChange
from forecast.service_key import Owner
from kube.decoding.watched_kinds import UndecodableObject
from kube.objects.objects import PodInfo
from placement.machine_groups.machine_group_order import MachineGroupOrder
from placement.machine_groups.membership import Membership
from placement.node_order import in_order
from placement.policies.policy import Policy
from placement.policies.pool_order import PoolOrder
from placement.reservations.reserved_targets import ReservedTargets
from placement.reservations.watched_plans import LONGEST_SECONDS, WATCHED_PLANS, MoveState
from scorer.options import ScorerOptions
from scorer.scoring_policy import scoring_policy
from tests.placement.small_cluster import node_of, pod_of, state_of, view_of_state

SINCE = 1_800_000_000.0


def plan(state: str = "evicted", name: str = "p", **fields: Any) -> Any:
    """A plan with one move of Deployment/cart from a to b, as the watch hands it in."""
    move = {"namespace": "default", "pod": "old", "uid": "default/old", "service": "Deployment/cart", "to": "b"}
    entry = {"uid": "default/old", "state": state, "since": "2027-01-15T08:00:00Z"}
    body = {
        "metadata": {"name": name, "resourceVersion": "7"},
        "spec": {"mode": "on", "moves": [{**move, "from": "a", **fields}]},
        "status": {"moves": [entry]},
    }
    return WATCHED_PLANS.decoded(json.dumps(body).encode())[0]


def of_cart(name: str, node: str = "", app: str = "cart") -> PodInfo:
    labels = {"app": app, "pod-template-hash": "6b7c9d8f5"}
    return pod_of(name, labels, node=node, owner=Owner("ReplicaSet", f"{app}-6b7c9d8f5"), owner_uid=f"uid-{app}")


class World:
    def __init__(self) -> None:
        self.state = state_of(map(node_of, "abc"), [of_cart("old", "a")])
        self.now = SINCE
        self.reserved = ReservedTargets(self.state, clock=lambda: self.now)
        self.view = view_of_state(self.state)

    def preferred(self, pod: PodInfo, nodes: str = "abc") -> tuple[list[str], int]:
        rows = np.array(sorted(self.state.row_of[name] for name in nodes), dtype=np.int64)
        found = self.reserved.prefer(pod, 5, self.view, rows)
        return [self.state.names[row] for row in found.rows], found.most

    def put(self, pod: PodInfo) -> None:
        self.reserved.apply(self.state.put_pod(pod))

    def delete(self, uid: str) -> None:
        self.reserved.apply(self.state.delete_pod(uid))


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("state", list(MoveState))
def test_a_node_is_kept_while_a_replacement_may_still_be_created(world: World, state: MoveState) -> None:
    world.reserved.plans.put(plan(state))
    keeps = state in (MoveState.SURGING, MoveState.EVICTING, MoveState.EVICTED)
    assert world.preferred(of_cart("new")) == ((["b"], 1) if keeps else (["a", "b", "c"], 5))


def test_only_pods_of_the_service_that_pass_the_filters_there_get_it(world: World) -> None:
    world.reserved.plans.put(plan())
    assert world.preferred(of_cart("mail", app="mail")) == (["a", "b", "c"], 5)
    assert world.preferred(of_cart("new"), nodes="ac") == (["a", "c"], 5)
    assert world.preferred(of_cart("old")) == (["a", "b", "c"], 5), "the pod that moves does not replace itself"
    assert world.reserved.tells_apart(of_cart("new")) != world.reserved.tells_apart(of_cart("mail", app="mail"))


def test_a_pod_that_takes_the_place_uses_it_up(world: World) -> None:
    world.reserved.plans.put(plan())
    world.put(of_cart("elsewhere", "c"))
    assert world.preferred(of_cart("new"))[0] == ["b"]
    world.put(of_cart("first", "b"))
    assert world.preferred(of_cart("second")) == (["a", "b", "c"], 5)
    world.delete("default/first")  # its binding failed
    assert world.preferred(of_cart("second"))[0] == ["b"]


def test_a_rebalancer_that_stopped_keeps_no_node_for_ever(world: World) -> None:
    world.reserved.plans.put(plan())
    world.now += LONGEST_SECONDS - 1
    assert world.preferred(of_cart("new"))[0] == ["b"]
    world.now += 2
    assert world.preferred(of_cart("new")) == (["a", "b", "c"], 5)


def test_plans_come_and_go(world: World) -> None:
    sink = world.reserved.plans
    assert world.reserved.tells_apart(of_cart("new")) is None
    sink.replace([plan(), plan(name="q", to="c", uid="default/other")])
    sink.delete(plan())
    assert world.preferred(of_cart("new")) == (["a", "b", "c"], 5), "the other plan has no such move under way"
    sink.put(plan())
    assert world.preferred(of_cart("new"))[0] == ["b"]
    sink.absent()
    assert world.preferred(of_cart("new")) == (["a", "b", "c"], 5)
    assert world.reserved.has_any is False


def test_a_kept_node_comes_before_pools_and_machine_groups(world: World) -> None:
    groups, pools = MachineGroupOrder(Membership(())), PoolOrder(())
    plain = Policy(scoring_policy(ScorerOptions()))
    assert in_order(plain, (groups, world.reserved)) == (world.reserved, groups)
    assert in_order(replace(plain, pools=pools), (world.reserved, groups)) == (world.reserved, pools, groups)


def test_changes_of_a_seat_that_is_known_mean_nothing(world: World) -> None:
    world.reserved.plans.put(plan())
    world.put(of_cart("first", "c"))
    seat = world.state.seat_of["default/first"]
    world.reserved.apply([PodChange(of_cart("first", "b"), seat, seat)])
    assert world.preferred(of_cart("new"))[0] == ["b"]


@pytest.mark.parametrize(
    "change", [{"status": {"moves": [{"uid": "u", "state": "dancing", "since": "2027-01-15T08:00:00Z"}]}}, {"spec": 3}]
)
def test_a_plan_of_another_kind_is_left_out(change: Mapping[str, Any]) -> None:
    with pytest.raises(UndecodableObject, match="RebalancePlan p"):
        WATCHED_PLANS.decoded(json.dumps({"metadata": {"name": "p"}, **change}).encode())
