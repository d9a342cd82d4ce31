"""Which pods the leader decides about: each reason, and terms of other pods under random changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.assuming_cluster import AssumingCluster
from kube.objects.constraints import PodAffinityTerm, PodConstraints, TopologySpreadConstraint
from kube.objects.labels import selector_matches
from kube.objects.objects import DeviceAsk, NamespaceInfo, PodInfo, PodResourceClaim
from placement.index.namespaces import Namespaces
from placement.machine_groups.membership import BORROW
from scheduler.shards.one_decider import OneDecider, WideTerms
from scorer.options import ScorerOptions
from testing.objects import node_info, pod_info
from tests.placement.small_cluster import chosen, is_in, term

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
WEB = is_in("app", "web")


class World:
    """Tables with terms that follow them."""

    def __init__(self) -> None:
        self.cluster, self.namespaces, self.n_changed = AssumingCluster(ScorerOptions(), now=0.0), Namespaces(), 0
        self.terms = WideTerms(self.cluster, self.namespaces, self._changed)
        self.cluster.listeners.append(self.terms.apply)
        for i in range(2):
            self.cluster.put(node_info(f"node-{i}", allocatable={"cpu": 64.0, "memory": 1e12, "pods": 110.0}))

    def _changed(self) -> None:
        self.n_changed += 1


def reason(pod: PodInfo, **rules: Any) -> str:
    return OneDecider(World().terms, **rules).reason(pod)


def spread(key: str, *, hard: bool = True) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(1, key, hard, chosen(WEB))


def asking(resource: str) -> PodInfo:
    return pod_info("pod", device_asks=(DeviceAsk("main", 0, resource, 0, 1, False),))


def of(**constraints: Any) -> PodInfo:
    return pod_info("pod", namespace="default", labels={"app": "web"}, constraints=PodConstraints(**constraints))


ANY_REPLICA = {
    "no rule": pod_info("pod"),
    "anti-affinity by node": of(anti_affinity=(term(HOST, WEB),)),
    "affinity by node to pods of others": of(affinity=(term(HOST, is_in("app", "cache")),)),
    "spread by node": of(spread=(spread(HOST),)),
    "soft spread by zone": of(spread=(spread(ZONE, hard=False),)),
    "an extended resource without a DeviceClass": asking("example.com/gpu"),
}


@pytest.mark.parametrize("pod", ANY_REPLICA.values(), ids=ANY_REPLICA.keys())
def test_any_replica_decides_what_counts_on_one_node(pod: PodInfo) -> None:
    assert reason(pod) == ""


ONE_DECIDER = {
    "affinity by zone": (of(affinity=(term(ZONE, WEB),)), "its affinity to pods"),
    "anti-affinity by zone": (of(anti_affinity=(term(ZONE, WEB),)), "its affinity to pods"),
    "affinity by node to its own kind": (of(affinity=(term(HOST, WEB),)), "the first pod of its affinity"),
    "hard spread by zone": (of(spread=(spread(HOST), spread(ZONE))), "its topology spread"),
    "a Reservation": (pod_info("pod", stands_in=True), "it is a Reservation"),
    "a claim": (pod_info("pod", resource_claims=(PodResourceClaim("gpu", ""),)), "its devices"),
    "a resource of a DeviceClass": (asking("example.com/class"), "its devices"),
    "borrows": (pod_info("pod", annotations={BORROW: "true"}), "it borrows from a machine group"),
    "a quota": (pod_info("pod", namespace="team"), "a quota counts over all nodes"),
    "its profile": (pod_info("pod", scheduler_name="jobs"), "jobs are planned over all nodes"),
}


@pytest.mark.parametrize(("pod", "why"), ONE_DECIDER.values(), ids=ONE_DECIDER.keys())
def test_the_leader_decides_what_counts_over_several_nodes(pod: PodInfo, why: str) -> None:
    said = reason(
        pod,
        class_resources={"example.com/class"},
        has_quota=lambda namespace: namespace == "team",
        by_profile=lambda one: "jobs are planned over all nodes" if one.scheduler_name == "jobs" else "",
    )
    assert said.startswith(why)


def test_a_pod_that_a_wide_term_of_another_one_means_is_the_leaders() -> None:
    world = World()
    pod, decider = of(), OneDecider(world.terms)
    away = pod_info("away", node="node-0", constraints=PodConstraints(anti_affinity=(term(ZONE, WEB),)))
    world.cluster.put(away)
    assert decider.reason(pod) == "the anti-affinity of another pod counts over several nodes"
    assert decider.reason(replace(pod, labels={"app": "cache"})) == ""
    assert decider.reason(replace(pod, namespace="other")) == ""
    world.cluster.delete(away)
    assert decider.reason(pod) == "" and world.n_changed == 2


def test_a_term_may_mean_namespaces_by_their_labels() -> None:
    world = World()
    wide = term(ZONE, WEB, namespaces=(), namespace_selector=chosen(is_in("team", "a")))
    world.cluster.put(pod_info("away", constraints=PodConstraints(anti_affinity=(wide,))))
    assert not world.terms.mean(of())
    world.namespaces.put(NamespaceInfo("default", {"team": "a"}))
    assert world.terms.mean(of())


TERMS = [term(key, is_in("app", app)) for key in (HOST, ZONE, "rack") for app in ("web", "cache")]
PODS = st.builds(
    lambda i, node, terms: pod_info(
        f"pod-{i}",
        node=node,
        namespace="default",
        requests={"cpu": 0.1},
        constraints=PodConstraints(anti_affinity=tuple(terms)),
    ),
    st.integers(0, 7),
    st.sampled_from(["", "node-0", "node-1"]),
    st.lists(st.sampled_from(TERMS), max_size=3),
)
CHANGES = st.lists(
    st.tuples(st.sampled_from(["put", "put", "delete", "assume", "forget", "replace"]), PODS), max_size=30
)
MEANT = [pod_info("new", namespace="default", labels={"app": app}) for app in ("web", "cache", "other")]


@given(changes=CHANGES)
def test_terms_under_changes_are_those_of_a_recomputation(changes: list[tuple[str, PodInfo]]) -> None:
    world = World()
    for what, pod in changes:
        n_changed, before = world.n_changed, set(world.terms._terms)
        _change(world.cluster, what, pod)
        anew = WideTerms(world.cluster, world.namespaces, lambda: None)
        anew.rebuild()
        assert world.terms._terms == anew._terms
        assert [world.terms.mean(one) for one in MEANT] == [
            any(
                one.topology_key != HOST and world.namespaces.meant_by(one, "default") and _selects(one, meant)
                for pod in world.cluster.state.pods.values()
                for one in pod.constraints.anti_affinity
            )
            for meant in MEANT
        ]
        assert before == set(world.terms._terms) or world.n_changed > n_changed, "pods have to be looked at again"


def _change(cluster: AssumingCluster, what: str, pod: PodInfo) -> None:
    known = cluster.state.pods.get(pod.uid)
    match what:
        case "put":
            cluster.put(pod)
        case "delete":
            cluster.delete(pod)
        case "assume" if known is not None and not known.node:
            cluster.assume_all([known], [cluster.state.row_of["node-0"]], 1e9)
        case "forget":
            cluster.forget(pod.uid)
        case "replace":
            cluster.replace_pods([pod])


def _selects(one: PodAffinityTerm, pod: PodInfo) -> bool:
    return one.selector is not None and selector_matches(one.selector, pod.labels)
