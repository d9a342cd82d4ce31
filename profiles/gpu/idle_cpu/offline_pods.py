"""Which pods are offline: they ask for no GPU, and may be evicted whenever another pod needs the cores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kube.objects.objects import ANNOTATION_PREFIX, PodInfo
from placement.card_types.listed_cards import asks_for_cards
from placement.filters.pod_annotations import comes_with_node
from placement.node_rule_settings import DeviceOptions
from placement.pod_groups.group_of_pod import group_of
from placement.pod_importance import LEAST_STANDING
from profiles.gpu.gpu_settings import GpuOptions, PlainPods
from profiles.online.colocation_settings import GapOptions

OFFLINE_ANNOTATION: Final = ANNOTATION_PREFIX + "offline"

_MOST: Final = 2**20
"""Priorities further from 0 than this count as equal among offline pods."""


@dataclass(frozen=True, slots=True)
class OfflinePods:
    """
    asks_for_gpus  : whether a pod does, by whatever means. Quick: asked of every pod that comes or goes
    scheduler_name : of the GPU profile; pods of others are none of its business
    priority_below : pods of a lower priority are offline without saying so
    """

    asks_for_gpus: Callable[[PodInfo], bool]
    scheduler_name: str
    priority_below: int = 0

    def is_offline(self, pod: PodInfo) -> bool:
        """Of a pod of the profile. Pods of a DaemonSet belong to their node."""
        says_so = pod.annotations.get(OFFLINE_ANNOTATION, "").lower() == "true"
        is_meant = says_so or pod.priority < self.priority_below
        return is_meant and pod.scheduler_name == self.scheduler_name and not self._belongs_there(pod)

    def is_kept_apart(self, pod: PodInfo, plain: PlainPods) -> bool:
        """Whether it is neither offline nor of use to GPUs: kept off their nodes."""
        if plain is PlainPods.ANYWHERE or group_of(pod) is not None:
            return False
        return not self._belongs_there(pod) and not self.is_offline(pod)

    def may_preempt(self, pod: PodInfo) -> bool:
        """Return False for an offline pod: no pod has to go for one that takes what is left over."""
        return not self.is_offline(pod)

    def standing(self, pod: PodInfo) -> int:
        """What counts as its priority where victims of preemption are chosen: offline pods go before all others, those
        of the lowest priority first. See placement.pod_importance."""
        if not self.is_offline(pod):
            return pod.priority
        return LEAST_STANDING + _MOST + max(-_MOST, min(pod.priority, _MOST))

    def _belongs_there(self, pod: PodInfo) -> bool:
        return comes_with_node(pod) or self.asks_for_gpus(pod)


def offline_pods(gpu: GpuOptions, gap: GapOptions, devices: DeviceOptions) -> OfflinePods:
    """Return which pods may use idle cores of GPU nodes. devices: how pods ask for cards."""
    return OfflinePods(lambda pod: asks_for_cards(pod, devices), gpu.scheduler_name, gap.priority_below)
