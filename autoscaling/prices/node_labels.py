"""What labels say of a node as something that is paid for: instance type, region, and whether it is spot capacity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_INSTANCE_TYPE: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_REGION: Final = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")

_SPOT: Final[Mapping[str, str]] = {
    "karpenter.sh/capacity-type": "spot",  # https://karpenter.sh/docs/concepts/scheduling/
    "eks.amazonaws.com/capacityType": "SPOT",  # managed node groups of EKS
    "cloud.google.com/gke-spot": "true",  # https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms
    "cloud.google.com/gke-preemptible": "true",
    "kubernetes.azure.com/scalesetpriority": "spot",  # https://learn.microsoft.com/azure/aks/spot-node-pool
}


def instance_type(labels: Mapping[str, str]) -> str:
    """Such as m5.xlarge; "" = the labels do not say."""
    return _first(labels, _INSTANCE_TYPE)


def region(labels: Mapping[str, str]) -> str:
    """Such as eu-central-1; "" = the labels do not say."""
    return _first(labels, _REGION)


def is_spot(labels: Mapping[str, str]) -> bool:
    """Whether the cloud may take the node away, for a price that moves."""
    return any(labels.get(label) == value for label, value in _SPOT.items())


def costs_more(labels: Mapping[str, str]) -> bool:
    """Whether the node has what is not in the price of its instance type with Linux: Windows, or attached GPUs.

    https://cloud.google.com/kubernetes-engine/docs/how-to/gpus
    """
    return labels.get("kubernetes.io/os") == "windows" or "cloud.google.com/gke-accelerator" in labels


def _first(labels: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((labels[name] for name in names if labels.get(name)), "")
