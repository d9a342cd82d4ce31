from __future__ import annotations

from prometheus_client import CollectorRegistry

from kube.tables.state import ClusterState
from scheduler.queues.metrics import ShareGauges
from scheduler.queues.queue_of import QueueOf
from scheduler.queues.shares import Shares
from tests.scheduler.queues.queue_pods import PROFILES, a_job_pod, a_node


def test_what_owners_hold_is_exported() -> None:
    state = ClusterState()
    state.put_node(a_node("n", 10, 100))
    state.put_pod(a_job_pod("p", namespace="a", node="n", cpu=2))
    registry = CollectorRegistry()
    registry.register(ShareGauges(Shares(state, queue_of=QueueOf([], PROFILES))))
    labels = {"queue": "default", "owner": "a"}
    assert registry.get_sample_value("forecast_queue_owner_pods", labels) == 1
    assert registry.get_sample_value("forecast_queue_owner_dominant_share", labels) == 0.2
