"""A pod for tests that do not care which."""

from __future__ import annotations

from kube.objects.objects import PodInfo
from testing.objects import pod_info


def pod_named(namespace: str, name: str) -> PodInfo:
    """A small pod."""
    return pod_info(name, uid=f"{namespace}-{name}", namespace=namespace, requests={"cpu": 0.5, "memory": 2.0**30})
