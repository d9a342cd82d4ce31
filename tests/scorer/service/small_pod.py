"""A pod for tests that do not care which."""

from __future__ import annotations

from forecast.service_key import NO_OWNER
from kube.objects.objects import Phase, PodInfo, QosClass


def pod_named(namespace: str, name: str) -> PodInfo:
    """A small pod."""
    return PodInfo(
        uid=f"{namespace}-{name}",
        namespace=namespace,
        name=name,
        node="",
        labels={},
        annotations={},
        owner=NO_OWNER,
        owner_uid="",
        requests={"cpu": 0.5, "memory": 2.0**30},
        nonzero_requests=(0.5, 2.0**30),
        limits={},
        qos=QosClass.BURSTABLE,
        phase=Phase.PENDING,
        terminating=False,
        started=None,
        created=0.0,
    )
