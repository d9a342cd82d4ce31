"""Filter IdleCpu: pods without GPUs come to GPU nodes only if they are offline, and only where cores are left over.

    upper bound of the node's load(t) + the pod's own use(t)           <=  ceiling * capacity      hours ahead
    requests of all pods there + its own + what idle GPUs are kept     <=  allocatable             now

for CPU and memory (docs/use/tide.md). The first is what PredictedGap asks, and keeps the GPU pods that run from
being slowed down; the second keeps the GPUs that are idle from being stranded. Nodes without GPUs are let through.

What of a node's CPU and memory is kept for its GPUs that are idle now, so that none is stranded for want of them.

    kept = idle GPUs of the node * what a GPU of its model takes

    takes = (requests of all pods with GPUs of the model + PRIOR_GPUS * the node's share)
            / (GPUs that these pods hold           + PRIOR_GPUS)

    the node's share = allocatable / its GPUs

A mean over the whole cluster, by model, since pods with a large card need more cores than those with a small one. Where
few pods have such a card the node's own share counts more, and alone where none has: of an empty node of an unknown
kind everything is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final, Protocol

import numpy as np

from base.arrays import Bools, Floats, Ints
from cluster.tables.columns import request_units
from cluster.tables.state import ClusterState
from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.rejections import found
from profiles.gpu.gpu_settings import IdleCpuOptions
from profiles.gpu.idle_cpu.gpu_node_pods import KEPT_RESOURCES, GpuNodePods
from profiles.gpu.idle_cpu.offline_pods import OfflinePods
from profiles.online.colocation_filter import PredictedGap
from profiles.online.colocation_settings import GapOptions

# What of a node's CPU and memory is kept for its GPUs that are idle now, so that none is stranded for want of them.
#
#     kept = idle GPUs of the node * what a GPU of its model takes
#
#     takes = (requests of all pods with GPUs of the model + PRIOR_GPUS * the node's share)
#             / (GPUs that these pods hold           + PRIOR_GPUS)
#
#     the node's share = allocatable / its GPUs
#
# A mean over the whole cluster, by model, since pods with a large card need more cores than those with a small one.
# Where few pods have such a card the node's own share counts more, and alone where none has: of an empty node of an
# unknown kind everything is kept.

PRIOR_GPUS: Final = 8
"""As many GPUs as a large machine has: what a few small pods request at night says little of the morning."""

WHOLE: Final = 1000.0
"""Thousandths of a GPU."""

_EVERY_PRIORITY: Final = 2**31
_PLAIN: Final = "node(s) had GPUs, and the pod neither asks for any nor is offline"


def per_gpu(
    requested: Ints, held: Ints, model: Ints, n_devices: Ints, allocatable: Ints, fixed: Sequence[float | None]
) -> Floats:
    """(n_rows, n_kinds) units that a GPU of each node takes; 0 where there is none.

    requested   : (n_rows, n_kinds) units by pods with GPUs
    held        : (n_rows,) thousandths of GPUs that these pods hold
    model       : (n_rows,) number of the node's model, -1 = unknown, which is one of them
    n_devices   : (n_rows,)
    allocatable : (n_rows, n_kinds) units
    fixed       : (n_kinds,) units to be taken instead; None = measured
    """
    group = model + 1
    n_groups = int(group.max(initial=0)) + 1
    gpus = np.bincount(group, weights=held / WHOLE, minlength=n_groups)  # (n_groups,)
    found = np.zeros(allocatable.shape)
    devices = np.maximum(n_devices, 1)
    for kind, said in enumerate(fixed):
        if said is not None:
            found[:, kind] = said
            continue
        total = np.bincount(group, weights=requested[:, kind], minlength=n_groups)  # (n_groups,)
        share = allocatable[:, kind] / devices  # (n_rows,)
        found[:, kind] = (total[group] + PRIOR_GPUS * share) / (gpus[group] + PRIOR_GPUS)
    found[n_devices == 0] = 0.0
    return found


def kept_for_idle(idle: Ints, of_a_gpu: Floats) -> Ints:
    """(n_rows, n_kinds) whole units, rounded up.

    idle     : (n_rows,) thousandths of GPUs that are free
    of_a_gpu : (n_rows, n_kinds), see per_gpu
    """
    kept = idle[:, None] * of_a_gpu / WHOLE
    return np.ceil(np.round(kept, 6)).astype(np.int64)


class Devices(Protocol):
    """placement.devices.device_table.DeviceTable."""

    @property
    def n_devices(self) -> Ints:
        """(n_rows,)"""

    @property
    def free_milli(self) -> Ints:
        """(n_rows, most_devices) thousandths; -1 = no such device."""

    @property
    def model(self) -> Ints:
        """(n_rows,) -1 = unknown."""


class _OfflineGap(GapOptions):
    hours: ClassVar[int] = 6
    """Short: what comes later evicts offline pods (IdleCpuOptions.lead)."""


def gap_of(options: GapOptions) -> GapOptions:
    """Options of the PredictedGap that IdleCpu asks: it is only asked about offline pods, whatever their priority."""
    return _OfflineGap(priority_below=_EVERY_PRIORITY, ceiling=options.ceiling)


class IdleCpu(PlainFilter):
    """Evicting pods does not help: no pod has to go for a pod that takes what
    is left over.
    """

    name = "IdleCpu"
    woken_by = PredictedGap.woken_by | {EventKind.POD_BOUND}

    def __init__(
        self, options: IdleCpuOptions, offline: OfflinePods, pods: GpuNodePods, devices: Devices, gap: PredictedGap
    ) -> None:
        """
        pods, devices : follow the same tables
        gap           : by the options `gap_of`, of Colocation.gap
        """
        self.options, self._offline, self._pods, self._devices, self._gap = options, offline, pods, devices, gap
        cores = None if options.cores_per_gpu is None else 1000 * options.cores_per_gpu
        self._fixed = (cores, options.memory_bytes_per_gpu)

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        """Whether its answer is the same whatever comes to sit where."""
        return not self._offline.is_offline(pod)

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Of GPU nodes only."""
        if self._offline.is_kept_apart(pod, self.options.plain_pods):
            return found(self._with_gpus(), view, _PLAIN, preemptible=False)
        if not self._offline.is_offline(pod):
            return ()
        with_gpus = self._with_gpus()
        return list(self._without_room(pod, view, with_gpus)) if with_gpus.any() else ()

    def kept(self, state: ClusterState) -> Ints:
        """(n_rows, len(KEPT_RESOURCES)) milli-cores and bytes kept for GPUs that are idle."""
        n_devices, free = self._devices.n_devices, np.maximum(self._devices.free_milli, 0)
        idle = free.sum(axis=1)  # (n_rows,)
        held = int(WHOLE) * n_devices - idle
        columns = [state.kinds[kind] for kind in KEPT_RESOURCES]
        allocatable = state.allocatable_units[:, columns]
        requested = self._pods.requested_with_gpus()
        return kept_for_idle(idle, per_gpu(requested, held, self._devices.model, n_devices, allocatable, self._fixed))

    def offline_there(self) -> tuple[int, float]:
        """Offline pods on nodes with GPUs, and cores that they request."""
        with_gpus = [row for row in self._pods.rows_with_offline if self._devices.n_devices[row] > 0]
        pods = [pod for row in with_gpus for pod in self._pods.offline_on(row).values()]
        return len(pods), sum(pod.requests.get("cpu", 0.0) for pod in pods)

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        """A pod that takes a GPU may request less than was kept for it."""
        if not self._offline.is_offline(pod):
            about = {EventKind.NODE_ADDED, EventKind.NODE_CHANGED, EventKind.UNSCHEDULED_POD_CHANGED}
            return Hint.QUEUE if event.kind in about else Hint.SKIP
        if event.kind is EventKind.POD_BOUND:
            helps = event.pod is None or self._offline.asks_for_gpus(event.pod)
            return Hint.QUEUE if helps else Hint.SKIP
        return Hint.QUEUE if event.kind in self.woken_by else Hint.SKIP

    # Inside

    def _with_gpus(self) -> Bools:
        return np.asarray(self._devices.n_devices > 0)

    def _without_room(self, pod: PodInfo, view: ClusterView, with_gpus: Bools) -> Iterator[Rejection]:
        for one in self._gap.filter(pod, view):
            yield from found(one.nodes & with_gpus, view, one.reason, preemptible=False)
        state = view.state
        kept = self.kept(state)
        for position, kind in enumerate(KEPT_RESOURCES):
            wanted = request_units(kind, pod.requests.get(kind, 0.0))
            if wanted <= 0:
                continue  # a request of zero keeps no pod from a GPU
            column = state.kinds[kind]
            left = state.allocatable_units[:, column] - state.requested_units[:, column] - kept[:, position]
            reason = f"node(s) had no {kind} left beside what is kept for idle GPUs"
            yield from found(with_gpus & (left < wanted), view, reason, preemptible=False)
