"""How many more pods the nodes and the ResourceQuotas of a namespace hold. No I/O."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np

from autoscaling.nodes.guard import GuardedNodes
from base.arrays import Floats
from kube.objects.quantity import parse_quantity

QUOTAS_PATH: Final = "/api/v1/resourcequotas"

_COUNTED: Final = {
    "pods": "pods",
    "count/pods": "pods",
    "cpu": "cpu",
    "requests.cpu": "cpu",
    "memory": "memory",
    "requests.memory": "memory",
}
"""Of a quota, and what one pod takes of it. Limits and quotas of some pods only are not looked at."""


class _Metadata(msgspec.Struct):
    namespace: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    scopes: list[str] | None = None
    scope_selector: dict[str, object] | None = None


class _Status(msgspec.Struct):
    hard: dict[str, str] | None = None
    used: dict[str, str] | None = None


class _Quota(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _Quotas(msgspec.Struct):
    items: list[_Quota] | None = None


Left = Mapping[str, list[dict[str, float]]]
"""What each quota of a namespace has left, by what a pod takes of it: pods, cpu, memory."""


def read_quotas(body: bytes) -> dict[str, list[dict[str, float]]]:
    """What is left of the quotas of each namespace, from their list."""
    found: dict[str, list[dict[str, float]]] = {}
    for one in msgspec.json.decode(body, type=_Quotas).items or ():
        if one.spec.scopes or one.spec.scope_selector:
            continue
        left: dict[str, float] = {}
        used = one.status.used or {}
        for name, hard in (one.status.hard or {}).items():
            if (taken := _COUNTED.get(name)) is not None:
                rest = parse_quantity(hard) - parse_quantity(used.get(name, "0"))
                left[taken] = min(left.get(taken, math.inf), rest)
        found.setdefault(one.metadata.namespace, []).append(left)
    return found


class Room:
    """What is free, less what was taken in this turn."""

    def __init__(self, nodes: GuardedNodes, quotas: Left) -> None:
        free = np.maximum(nodes.allocatable - nodes.requested, 0.0)
        self._free: Floats = np.where(nodes.usable[:, None], free, 0.0)  # (n_nodes, 2) cores and bytes
        self._usable, self._quotas = nodes.usable, quotas

    def take(self, namespace: str, cores: float, size: float, pods: int) -> tuple[int, str]:
        """Take room for up to `pods` pods; returns for how many there is some, and what has no more, '' = all fit."""
        most, why = pods, ""
        for left in self._quotas.get(namespace, []):
            needs = {"pods": 1.0, "cpu": cores, "memory": size}
            for name, rest in left.items():
                if needs[name] > 0 and (fits := max(math.floor(rest / needs[name] + 1e-9), 0)) < most:
                    most, why = fits, f"the ResourceQuota of the namespace leaves {name} for {fits}"
        per_node = self._fits(cores, size)
        if (there := int(per_node.sum())) < most:
            most, why = there, f"the nodes have room for {there}"
        self._reserve(namespace, cores, size, most, per_node)
        return most, why

    def _fits(self, cores: float, size: float) -> Floats:
        """(n_nodes,) pods that each node has room for."""
        request = np.array([cores, size])
        asked = request > 0
        if not asked.any():
            return np.where(self._usable, float(2**31), 0.0)
        return np.asarray(np.floor(self._free[:, asked] / request[asked] + 1e-9).min(axis=1, initial=np.inf))

    def _reserve(self, namespace: str, cores: float, size: float, pods: int, per_node: Floats) -> None:
        """On the nodes with the most room first, as kube-scheduler spreads."""
        for left in self._quotas.get(namespace, []):
            for name, taken in (("pods", 1.0), ("cpu", cores), ("memory", size)):
                if name in left:
                    left[name] -= taken * pods
        for row in np.argsort(-per_node, kind="stable").tolist():
            if pods <= 0:
                return
            here = int(min(pods, per_node[row]))
            self._free[row] -= np.array([cores, size]) * here
            pods -= here
