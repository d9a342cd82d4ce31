"""Pods are made to go by EvictionRequests where the API is served; each goes once, and none that its move has left."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from kube.client.api_answer import ApiAnswer
from rebalancer.execution.eviction_requests import REQUESTER
from rebalancer.execution.observation import Reply
from rebalancer.execution.plan_wire import moment
from tests.rebalancer.execution.small_cluster import Killed, Manifest, SmallCluster, move_of, states
from tests.rebalancer.execution.test_executor import executor_of, plan, play, run


@dataclass
class ClusterWithRequests(SmallCluster):
    """Serves EvictionRequests. Its controllers evict the pod of each as the Eviction API allows; one try, then Failed.

    attended : whether there are such controllers
    failing  : reason of the condition Failed that they set instead; "" = they evict
    """

    attended: bool = True
    failing: str = ""
    asked: dict[str, Manifest] = field(default_factory=dict)

    def _answer(self, method: str, path: str, body: Manifest) -> ApiAnswer:
        if not path.startswith("/apis/lifecycle.k8s.io/v1alpha1"):
            return super()._answer(method, path, body)
        name = path.rpartition("/")[2]
        if method == "GET" and name == "v1alpha1":
            return _json({"resources": [{"name": "evictions"}, {"name": "evictionrequests"}]})
        if "labelSelector" in name:
            return _json({"items": list(self.asked.values())})
        if method == "POST":
            name = body["metadata"]["name"]
            if name in self.asked:
                return ApiAnswer(409, b"{}", "409 exists")
            self.asked[name] = body
            body["metadata"] |= {"generation": 1, "namespace": "shop"}
        if name not in self.asked:
            return ApiAnswer(404, b"{}", "404")
        found = self.asked[name]
        if method == "PATCH" and found["spec"] != (changed := found["spec"] | body["spec"]):
            found["spec"], found["metadata"]["generation"] = changed, found["metadata"]["generation"] + 1
        return _json(found)

    def tick(self, seconds: float = 1.0) -> None:
        super().tick(seconds)
        for one in self.asked.values() if self.attended else ():
            if (one.get("status") or {}).get("observedGeneration") == one["metadata"]["generation"]:
                continue
            target = one["spec"]["target"]["pod"]
            kind, reason = "Failed", self.failing
            if one["spec"]["intent"] == "Eviction" and not reason:
                body = {"deleteOptions": {"preconditions": {"uid": target["uid"]}}}
                answer = self._evict(self.pods.get(("shop", target["name"])), body)
                kind, reason = (
                    ("TargetEvicted", "PodDeleted") if answer.is_success else ("Failed", "NoFurtherResponder")
                )
            conditions = [{"type": kind, "status": "True", "reason": reason, "message": f"it is {reason}"}]
            one["status"] = {"observedGeneration": one["metadata"]["generation"], "conditions": conditions}

    @property
    def intents(self) -> list[str]:
        return [one["spec"]["intent"] for one in self.asked.values()]

    @property
    def by_hand(self) -> int:
        """How often the Eviction API was asked."""
        return sum(one.endswith("/eviction") for one in self.requests)


def _json(body: Manifest) -> ApiAnswer:
    return ApiAnswer(200, json.dumps(body).encode())


def cluster_with_requests(**fields: Any) -> tuple[ClusterWithRequests, Manifest]:
    """Three nodes, one service of one pod, and a plan that moves it from a to b."""
    cluster = ClusterWithRequests(**fields)
    for name in "abc":
        cluster.add_node(name)
    (pod,) = cluster.add_app("cart", 1)
    plan(cluster, move_of(pod), start_before=moment(cluster.now + 60))
    return cluster, pod


def test_the_pod_goes_by_an_eviction_request_of_its_plan() -> None:
    cluster, pod = cluster_with_requests()
    executor = executor_of(cluster)
    play(cluster, executor)
    uid = pod["metadata"]["uid"]
    (asked,) = cluster.asked.values()
    assert asked["spec"]["target"] == {"pod": {"name": pod["metadata"]["name"], "uid": uid}}
    assert (asked["spec"]["requester"], asked["metadata"]["ownerReferences"][0]["name"]) == (REQUESTER, "p")
    assert list(states(cluster).values()) == ["done"]
    assert (cluster.evicted, cluster.by_hand, cluster.intents) == ([uid], 0, ["Withdrawn"])
    assert executor.figures.evictions == {Reply.ASKED: 1}


def test_responders_that_fail_are_asked_again_until_the_deadline() -> None:
    cluster, _ = cluster_with_requests(failing="NoFurtherResponder")
    play(cluster, executor_of(cluster))
    (record,) = cluster.plans["p"]["status"]["moves"]
    assert (record["state"], record["message"]) == ("refused", "it is NoFurtherResponder")
    assert (cluster.evicted, cluster.by_hand, cluster.intents) == ([], 0, ["Withdrawn"])
    assert next(iter(cluster.asked.values()))["metadata"]["generation"] > 5


@pytest.mark.parametrize(
    "fields", [{"attended": False}, {"failing": "EvictionInvalid"}, {"forbidden": "POST /apis/life"}]
)
def test_the_eviction_api_is_asked_where_no_request_can_help(fields: dict[str, Any]) -> None:
    cluster, pod = cluster_with_requests(**fields)
    play(cluster, executor_of(cluster))
    assert list(states(cluster).values()) == ["done"]
    assert cluster.evicted == [pod["metadata"]["uid"]] and cluster.by_hand == 1
    assert "Eviction" not in cluster.intents


def test_the_request_is_withdrawn_before_a_record_says_that_the_pod_stays() -> None:
    # The responders take their time, and the time of the plan ends.
    cluster, pod = cluster_with_requests(attended=False)
    cluster.plans["p"]["spec"]["startBefore"] = moment(cluster.now + 10).isoformat()
    lost = True
    cluster.fault = lambda number, when: (
        lost and when == "before" and cluster.requests[number].startswith("PATCH /apis/li")
    )
    executor = executor_of(cluster)
    for _ in range(20):
        assert "cannot" not in run(executor.step()).trouble
        cluster.tick()
    assert list(states(cluster).values()) == ["evicting"] and cluster.intents == ["Eviction"]
    lost = False
    play(cluster, executor)
    assert list(states(cluster).values()) == ["skipped"] and cluster.intents == ["Withdrawn"]
    assert not cluster.evicted and pod["spec"]["nodeName"] == "a"


def test_the_request_of_a_deleted_plan_is_withdrawn() -> None:
    cluster, _ = cluster_with_requests(attended=False)
    executor = executor_of(cluster, unsure_seconds=0)
    for _ in range(4):
        run(executor.step())
        cluster.tick()
    assert cluster.intents == ["Eviction"]
    del cluster.plans["p"]
    for _ in range(4):
        run(executor.step())
        cluster.tick()
    executor.reset()
    play(cluster, executor)
    assert cluster.intents == ["Withdrawn"] and not cluster.evicted


@pytest.mark.parametrize(("when", "fields"), [("before", {}), ("after", {}), ("after", {"attended": False})])
def test_a_pod_goes_once_wherever_the_process_is_killed(when: str, fields: dict[str, Any]) -> None:
    n_killed = 0
    for fatal in range(200):
        cluster, pod = cluster_with_requests(**fields)
        cluster.fault = killing(len(cluster.requests) + fatal, when)
        try:
            play(cluster, executor_of(cluster))
        except Killed:
            n_killed += 1
        else:
            break
        cluster.fault = lambda number, moment: False
        play(cluster, executor_of(cluster))
        assert cluster.evicted in ([pod["metadata"]["uid"]], []), fatal
        assert (list(states(cluster).values()) == ["done"]) == bool(cluster.evicted), fatal
        assert "Eviction" not in cluster.intents, fatal
    assert n_killed > 10


def killing(fatal: int, when: str) -> Callable[[int, str], bool]:
    """Kill the process at one of its requests."""

    def fault(number: int, moment: str) -> bool:
        if (number, moment) == (fatal, when):
            raise Killed
        return False

    return fault
