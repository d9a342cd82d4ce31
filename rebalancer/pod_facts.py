"""What the live tables know of pods and their services, apart from the pods themselves, when moves are planned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from cluster.assuming_cluster import AssumingCluster
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from placement.disruption_budgets import DisruptionBudgets
from rebalancer.costs.facts import MoveFacts, VolumeBinding
from rebalancer.costs.startup_times import StartupTimes

CoolingUntil = Callable[[PodInfo], float | None]
"""Unix seconds until which a pod is not to be moved again; None = it was not moved lately."""


class PodFacts:
    """Made and asked under the lock of the tables: one pass over all pods counts those that are ready."""

    def __init__(
        self,
        cluster: AssumingCluster,
        startup: StartupTimes,
        budgets: DisruptionBudgets,
        annotations_of: Callable[[str], Mapping[str, str]],
        cooling_until: CoolingUntil,
    ) -> None:
        """
        startup        : learns from every pod that passes by here
        annotations_of : ours, of a namespace
        """
        self._cluster, self._startup, self._budgets = cluster, startup, budgets
        self._annotations_of, self._cooling_until = annotations_of, cooling_until
        self._ready: Counter[ServiceKey] = Counter()
        for pod in cluster.state.pods.values():
            if pod.ready is not None and not pod.terminating:
                service = cluster.state.service_key(pod)
                self._ready[service] += 1
                startup.see(pod, service)

    def of(self, pod: PodInfo) -> MoveFacts:
        """Return the facts of one pod."""
        state = self._cluster.state
        service = state.service_key(pod)
        return MoveFacts(
            service=service,
            replicas=round(state.replicas_with(service)),
            ready_replicas=self._ready[service],
            startup=self._startup.of(service),
            disruptions_allowed=self._budgets.allowed_for(pod),
            # Filters keep a pod where its volumes can be mounted: on one node only, it may go nowhere.
            volumes=VolumeBinding.ANYWHERE if any(one.claim for one in pod.volumes) else VolumeBinding.NONE,
            remaining_seconds=self._remaining(pod, service),
            cooling_until=self._cooling_until(pod),
            namespace_annotations=self._annotations_of(pod.namespace),
        )

    def _remaining(self, pod: PodInfo, service: ServiceKey) -> float | None:
        run = self._cluster.run_of(pod, service)
        if run is None:
            return None
        begun = pod.created if pod.started is None else pod.started
        return max(begun + run - self._cluster.now, 0.0)
