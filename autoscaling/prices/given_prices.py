"""Prices that the user gives, by node group, instance type or labels: of the settings, of `--price`, of a CSV file."""

from __future__ import annotations

from collections.abc import Mapping

from autoscaling.prices.node_labels import instance_type, is_spot
from autoscaling.prices.node_prices import NodePrice, PricedNode
from kube.objects.constraints import LabelSelector
from kube.objects.labels import parse_selector, selector_matches

SPOT = " spot"
"""After an instance type: its price as spot capacity. The price of the type alone does not hold for spot nodes."""


class GivenPrices:
    """Implements PriceSource. A selector of labels comes before an instance type, and this before a node group."""

    def __init__(self, per_hour: Mapping[str, float], source: str) -> None:
        """per_hour: by `m5.xlarge`, `m5.xlarge spot`, `8 cores, 32 GiB`, or a selector of labels such as
        `pool=web,topology.kubernetes.io/region=eu-west-1`. Raises InputError: a selector that cannot be read."""
        self._source = source
        self._by_labels: list[tuple[LabelSelector, float]] = [
            (parse_selector(key), price) for key, price in per_hour.items() if "=" in key
        ]
        self._by_name = {key.strip(): price for key, price in per_hour.items() if "=" not in key}

    def price_of(self, node: PricedNode) -> NodePrice | None:
        found = next((price for selector, price in self._by_labels if selector_matches(selector, node.labels)), None)
        if found is None and (kind := instance_type(node.labels)):
            found = self._by_name.get(kind + SPOT if is_spot(node.labels) else kind)
        if found is None:
            found = self._by_name.get(node.group)
        return None if found is None else NodePrice(found, self._source)
