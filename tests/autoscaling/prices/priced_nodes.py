"""Nodes to be priced."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from autoscaling.prices.node_prices import PricedNode, shape_name

TYPE = "node.kubernetes.io/instance-type"
REGION = "topology.kubernetes.io/region"


def node(
    name: str = "n",
    kind: str = "",
    cores: float = 4,
    gib: float = 16,
    *,
    region: str = "",
    labels: Mapping[str, str] = MappingProxyType({}),
) -> PricedNode:
    """A node of this instance type, region and size. labels: others"""
    found = {key: value for key, value in ((TYPE, kind), (REGION, region)) if value}
    return PricedNode(name, found | dict(labels), cores, gib * 2**30, shape_name(cores, gib * 2**30))
