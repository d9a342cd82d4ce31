"""How devices are named by nodes and pods; the settings say the same under node_rules.devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from forecast.errors import InputError
from kube.objects.qualified_names import is_qualified_name
from placement.devices.card_names import TYPE_LABELS

__all__ = ["MODEL_LABELS", "DeviceOptions"]

MODEL_LABELS: Final = (
    *TYPE_LABELS,
    "aliyun.accelerator/nvidia_name",
    "cloud.google.com/gke-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
)
"""Those of the two labellers, then of Alibaba Cloud, Google and Karpenter."""


@dataclass(frozen=True, slots=True)
class DeviceOptions:
    """
    resources              : extended resources of which one is a whole card. Where a node offers several of them they
                             are taken for the same cards
    shared_memory_resource : memory of cards, in the units of the device plugin that shares them; '' = nobody uses it
    count_resource         : how many cards that memory is on; '' = nobody says
    model_labels           : node labels that say the model of the node's cards; the first that a node has counts
    mixed                  : whether whole and shared cards may be handed out on one node. Only where whatever hands out
                             whole cards obeys the chosen index: NVIDIA's own device plugin does not

    Raises InputError.
    """

    resources: tuple[str, ...] = ("nvidia.com/gpu",)
    shared_memory_resource: str = "aliyun.com/gpu-mem"
    count_resource: str = "aliyun.com/gpu-count"
    model_labels: tuple[str, ...] = MODEL_LABELS
    mixed: bool = True

    def __post_init__(self) -> None:
        named = [*self.resources, *filter(None, (self.shared_memory_resource, self.count_resource))]
        for name in named:
            if "/" not in name or not is_qualified_name(name):
                raise InputError(
                    f"{name!r} cannot be a resource of devices: extended resources have a domain, as nvidia.com/gpu has"
                )
        twice = sorted({name for name in named if named.count(name) > 1})
        if twice:
            raise InputError(f"resource {twice[0]!r} is given twice: name each once, as a whole card, memory or number")
