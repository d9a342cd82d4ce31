"""A recording by hand: CPU and memory of single pods on nodes, without anything besides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forecast.hot_share import HOT_SHARE
from forecast.resources import CPU, MEMORY, RESOURCES
from scorer.replay.recording import Recording

CORES, BYTES = 10.0, 100.0


def tiny_recording(
    cpu: Sequence[float],
    node: Sequence[int],
    *,
    n_nodes: int,
    service: Sequence[int] | None = None,
    requests: float = 0.1,
    n_slots: int = 4,
    memory: float = 0.0,
) -> Recording:
    """Pods that use so many cores all the time, on nodes of 10 cores and 100 bytes.

    service : of each pod; None = each has its own
    """
    n, n_resources = len(cpu), len(RESOURCES)
    load = np.zeros((n, n_resources, n_slots), dtype=np.float32)
    load[:, CPU] = np.asarray(cpu)[:, None]
    load[:, MEMORY] = memory
    of = np.arange(n) if service is None else np.asarray(service)
    n_services = int(of.max()) + 1
    capacity = np.full((n_nodes, n_resources), np.nan)
    capacity[:, CPU], capacity[:, MEMORY] = CORES, BYTES
    return Recording(
        service=of,
        ending=np.zeros(n_services, dtype=np.bool_),
        requests=np.full((n, 2), requests),
        birth=np.zeros(n, dtype=np.int64),
        death=np.full(n, n_slots),
        started=np.zeros(n, dtype=np.int64),
        load=load,
        present=np.ones((n, n_slots), dtype=np.float32),
        live=load[:, :, 0].astype(np.float64),
        base=np.zeros((n_nodes, n_resources, n_slots)),
        live_base=np.zeros((n_nodes, n_resources)),
        first_node=np.asarray(node),
        nodes=np.arange(n_nodes),
        capacity=capacity,
        assumed=np.zeros((n_nodes, n_resources), dtype=np.bool_),
        allocatable=capacity[:, :2].copy(),
        service_requests=np.full((n_services, 2), requests),
        hot=HOT_SHARE,
    )
