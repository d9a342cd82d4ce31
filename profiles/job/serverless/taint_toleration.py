"""Filter TaintToleration for jobs: a pod that may leave the cluster tolerates what providers taint their nodes with.

The taint is there to keep pods away that do not mean virtual nodes. Here the plugin Serverless decides that, and who
writes a CronJob need not know of providers. Other taints of virtual nodes count as ever.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from kube.objects.constraints import Toleration
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView, NodeFilter, Rejection
from placement.filters.taint_toleration import TaintToleration
from placement.virtual_node_settings import First, ServerlessOptions
from profiles.job.job_annotations import may_leave, terms_of


class ProviderToleration(NodeFilter):
    """Takes the place of TaintToleration: it has its name."""

    name = "TaintToleration"

    def __init__(self, options: ServerlessOptions) -> None:
        # With NoExecute, a controller that reads the pod's own tolerations would evict it right away.
        self._tolerations = tuple(Toleration(key, "Exists", "", "NoSchedule") for key in options.taints)
        self._is_on = options.tolerate and options.first is not First.NEVER
        self._plain = TaintToleration()

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        if self._is_on and len(view.index.taints.sets) > 1 and not may_leave(pod, terms_of(pod)):
            tolerations = (*pod.constraints.tolerations, *self._tolerations)
            pod = replace(pod, constraints=replace(pod.constraints, tolerations=tolerations))
        return self._plain.filter(pod, view)

    def lasting(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        return self.filter(pod, view)

    def lasting_key(self, pod: PodInfo) -> Hashable:
        return pod.constraints.tolerations, may_leave(pod, terms_of(pod))
