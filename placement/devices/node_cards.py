"""What cards a node has, as its Node object says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cluster.tables.columns import whole_units
from kube.objects.objects import NodeInfo
from placement.devices.annotations import MOST_DEVICES
from placement.devices.options import DeviceOptions


@dataclass(frozen=True, slots=True)
class NodeCards:
    """
    n      : devices, 1024 at most
    memory : units of the sharing plugin that each has; 0 = that plugin is not there
    model  : as a label says it; '' = no label does
    """

    n: int = 0
    memory: int = 0
    model: str = ""


NO_CARDS: Final = NodeCards()


def cards_of(node: NodeInfo | None, options: DeviceOptions) -> NodeCards:
    """A node that is gone has none. Whole cards and those that are shared are the same ones: the larger number counts.

    Memory is shared out evenly, as NewNodeInfo of gpushare-scheduler-extender does (pkg/cache/nodeinfo.go).
    """
    if node is None:
        return NO_CARDS
    names = (*options.resources, options.count_resource)
    n = min(MOST_DEVICES, max(_units(node.allocatable, name) for name in names))
    if n <= 0:
        return NO_CARDS
    memory = _units(node.capacity, options.shared_memory_resource)
    cards = _units(node.capacity, options.count_resource) or n
    return NodeCards(n, memory // cards, model_of(node, options))


def model_of(node: NodeInfo, options: DeviceOptions) -> str:
    """The card model that the first of the labels says; '' = none does."""
    return next((node.labels[label] for label in options.model_labels if node.labels.get(label)), "")


def _units(amounts: Mapping[str, float], kind: str) -> int:
    return max(0, whole_units(kind, amounts[kind])) if kind in amounts else 0
