"""Pods that are never moved, whatever it would help."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from forecast.service_key import NO_OWNER, Owner, ServiceKey
from kube.objects.objects import PodPhase, PodResourceClaim
from rebalancer.costs.move_facts import VolumeReach
from tests.rebalancer.costs.movable import LONG_AGO, NIGHT, OCCASION, cost, facts, pod


@pytest.mark.parametrize(
    ("of_pod", "of_service", "because"),
    [
        ({"stands_in": True}, {}, "room of a Reservation"),
        ({"node": ""}, {}, "on no node"),
        ({"terminating": True}, {}, "being deleted"),
        ({"phase": PodPhase.PENDING}, {}, "phase is Pending"),
        ({"phase": PodPhase.SUCCEEDED}, {}, "phase is Succeeded"),
        ({"phase": PodPhase.UNKNOWN}, {}, "phase is Unknown"),
        ({"ready": None}, {}, "not ready"),
        ({"created": NIGHT.timestamp() - 599}, {}, "younger than 600 s"),
        ({"owner": NO_OWNER}, {}, "no controller"),
        ({"scheduling_group": "train"}, {}, "gang"),
        ({"labels": {"scheduling.x-k8s.io/pod-group": "train"}}, {}, "gang"),
        ({"annotations": {"forecast-scheduler.io/min-member": "4"}}, {}, "gang"),
        ({"resource_claims": (PodResourceClaim("gpu", "claim"),)}, {}, "resource claims"),
        ({"priority": 2_000_001_000}, {}, "system pods"),
        ({"namespace": "kube-system"}, {}, "kube-system"),
        ({"shares_host": True}, {}, "node's network"),
        ({"local_volumes": ("scratch",)}, {}, "local volume scratch"),
        ({"annotations": {"forecast-scheduler.io/opt-out": "true"}}, {}, "opt-out"),
        ({}, {"service": ServiceKey("shop", "DaemonSet", "agent")}, "belongs to its node"),
        ({}, {"service": ServiceKey("shop", "StaticPod", "etcd")}, "belongs to its node"),
        ({}, {"service": ServiceKey("shop", "Kafka", "broker")}, "rebalance.cost.owners"),
        ({}, {"ready_replicas": 5}, "only 5 of 6"),
        ({}, {"disruptions_allowed": 0}, "PodDisruptionBudget"),
        ({}, {"volumes": VolumeReach.NODE}, "bound to its node"),
        ({}, {"volumes": VolumeReach.UNKNOWN}, "not known where"),
        ({}, {"cooling_until": NIGHT.timestamp() + 1}, "moved lately"),
        ({}, {"replicas": 1, "ready_replicas": 1}, "only replica"),
        ({}, {"disruptions_allowed": 1}, ""),
        ({}, {"disruptions_allowed": None}, ""),
        ({}, {"volumes": VolumeReach.ZONE}, ""),
        ({}, {"volumes": VolumeReach.ANYWHERE}, ""),
        ({}, {"cooling_until": NIGHT.timestamp()}, ""),
        ({}, {"ready_replicas": 7}, ""),  # a surge is under way
        ({}, {"service": ServiceKey("shop", "StatefulSet", "db")}, ""),
        ({}, {"replicas": 2, "ready_replicas": 2}, ""),
    ],
)
def test_protected_by_what_the_pod_or_its_service_is(
    of_pod: dict[str, Any], of_service: dict[str, Any], because: str
) -> None:
    found = cost(pod(**of_pod), facts(**of_service))
    assert found.may_move == (not because) and because in found.because


def test_owners_and_local_disks_can_be_allowed_for_the_whole_cluster() -> None:
    assert cost().may_move and not cost().by_surge
    of_kafka = facts(service=ServiceKey("shop", "Kafka", "broker"))
    assert cost(pod(owner=Owner("Kafka", "broker")), of_kafka, owners=["Kafka"]).may_move
    assert cost(pod(local_volumes=("scratch",)), move_local_storage=True).may_move


def test_no_annotation_moves_a_pod_of_an_excluded_service() -> None:
    of_service = facts(excluded="excluded.services has shop/cart")
    found = cost(pod(annotations={"forecast-scheduler.io/rebalance": "allowed"}), of_service)
    assert (found.may_move, found.because) == (False, "excluded.services has shop/cart")


SURGE = {"forecast-scheduler.io/move-by-surge": "true"}


@pytest.mark.parametrize(
    ("kind", "annotations", "may"),
    [
        ("Deployment", SURGE, True),
        ("Deployment", {"forecast-scheduler.io/move-by-surge": "false"}, False),
        ("Deployment", {}, False),
        ("StatefulSet", SURGE, False),
        ("Deployment", {"descheduler.alpha.kubernetes.io/evict": "true"}, False),
    ],
)
def test_a_single_replica_moves_by_surge_or_not_at_all(kind: str, annotations: dict[str, str], may: bool) -> None:
    single = facts(service=ServiceKey("shop", kind, "cart"), replicas=1, ready_replicas=1)
    found = cost(pod(annotations=annotations), single)
    assert found.may_move == found.by_surge == may


def test_a_surge_is_allowed_where_a_budget_lets_nothing_go_now() -> None:
    # A budget with minAvailable 1 never allows it for one replica, but does for the second.
    single = facts(replicas=1, ready_replicas=1, disruptions_allowed=0)
    assert cost(pod(annotations=SURGE), single).may_move
    assert not cost(pod(annotations=SURGE), facts(disruptions_allowed=0)).may_move
    assert cost(about=replace(single, namespace_annotations=SURGE)).by_surge


JOB = ServiceKey("shop", "Job", "report")


@pytest.mark.parametrize(
    ("remaining", "because"),
    [
        (None, "not known how long"),
        (3600.0, "ends before the peak"),
        ((OCCASION.peak - NIGHT).total_seconds(), "ends before the peak"),
        ((OCCASION.peak - NIGHT).total_seconds() + 1, ""),
    ],
)
def test_pods_of_jobs_move_only_if_they_still_run_in_the_peak(remaining: float | None, because: str) -> None:
    of_job = facts(service=JOB, replicas=1, ready_replicas=1, remaining_seconds=remaining)
    found = cost(pod(owner=Owner("Job", "report"), started=LONG_AGO), of_job)
    assert found.may_move == (not because) and because in found.because and not found.by_surge
