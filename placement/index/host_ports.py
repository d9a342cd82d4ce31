"""Ports of nodes that pods have taken."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from base.arrays import Bools
from kube.objects.constraints import HostPort
from kube.objects.objects import PodInfo

_EVERY_ADDRESS: Final = "0.0.0.0"


class HostPorts:
    """By protocol and port, then by address: how many pods on which rows.

    Unlike upstream's set of ports per node, a port that two pods share on a node (one was bound there by hand) stays
    taken until both are gone.
    """

    def __init__(self) -> None:
        self._pods: dict[tuple[str, int], dict[str, dict[int, int]]] = {}

    def count(self, row: int, pod: PodInfo, sign: int) -> None:
        """A pod sits on the node of a row (1), or no longer does, exactly as it was counted (-1)."""
        for wanted in pod.host_ports:
            port = (wanted.protocol, wanted.port)
            by_address = self._pods.setdefault(port, {})
            pods = by_address.setdefault(wanted.ip, {})
            left = pods.get(row, 0) + sign
            if left:
                pods[row] = left
                continue
            del pods[row]
            if not pods:
                del by_address[wanted.ip]
                if not by_address:
                    del self._pods[port]

    def taken(self, wanted: Iterable[HostPort], n_rows: int) -> Bools:
        """(n_rows,) nodes where one of these is in use.

        The rule of HostPortInfo.CheckConflict (staging/src/k8s.io/kube-scheduler/framework/types.go): the same protocol
        and port conflict if the addresses are equal or either is every address.
        """
        nodes = np.zeros(n_rows, dtype=bool)
        for port in wanted:
            by_address = self._pods.get((port.protocol, port.port), {})
            for address, pods in by_address.items():
                if address == port.ip or _EVERY_ADDRESS in (address, port.ip):
                    nodes[np.fromiter(pods, dtype=np.int64, count=len(pods))] = True
        return nodes
