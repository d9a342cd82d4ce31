"""Settings of cards: `node_rules.devices`."""

from __future__ import annotations

from typing import Final, Self

from pydantic import Field, model_validator

from base.setting_group import SettingGroup
from kube.objects.qualified_names import is_qualified_name
from placement.devices.card_names import TYPE_LABELS

MODEL_LABELS: Final = (
    *TYPE_LABELS,
    "aliyun.accelerator/nvidia_name",
    "cloud.google.com/gke-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
)
"""Those of the two labellers, then of Alibaba Cloud, Google and Karpenter."""


class DeviceOptions(SettingGroup):
    """How nodes say what cards they have (docs/use/gpu.md)."""

    resources: tuple[str, ...] = Field(default=("nvidia.com/gpu",), min_length=1)
    """Extended resources that count whole cards. If a node offers several of them, they are taken for the same
    cards."""

    shared_memory_resource: str = "aliyun.com/gpu-mem"
    """Extended resource of the device plugin for shared cards: their memory in units of the plugin, summed over a node.
    Empty: not used."""

    count_resource: str = "aliyun.com/gpu-count"
    """Extended resource of that plugin that counts the cards with that memory. Empty: not used."""

    model_labels: tuple[str, ...] = MODEL_LABELS
    """Node labels that say the model of its cards; the first that a node has counts."""

    mixed: bool = True
    """Allow whole and shared cards on one node. Only where whatever hands out whole cards obeys the chosen index:
    NVIDIA's own device plugin does not."""

    @model_validator(mode="after")
    def _can_be_told_apart(self) -> Self:
        named = [*self.resources, *filter(None, (self.shared_memory_resource, self.count_resource))]
        for name in named:
            if "/" not in name or not is_qualified_name(name):
                raise ValueError(
                    f"{name!r} cannot be a resource of devices: extended resources have a domain, as nvidia.com/gpu has"
                )
        twice = sorted({name for name in named if named.count(name) > 1})
        if twice:
            raise ValueError(f"resource {twice[0]!r} is given twice: name each once, as a whole card, memory or number")
        return self
