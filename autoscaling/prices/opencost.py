"""What OpenCost reckons that each node costs, from its API.

    GET /assets?window=24h
    {"code": 200, "data": {"<key>": {"type": "Node", "properties": {"name": "node-1", ...}, "minutes": 1440,
                                     "totalCost": 4.61, ...}, ...}}

As pkg/costmodel/handlers.go and core/pkg/opencost/asset_json.go of opencost/opencost write it; releases that cumulate
put the same objects into a list. `totalCost` is of `minutes`, with discounts and adjustments, for CPU, memory and GPUs.
The API does not name its currency: it is taken to be that of the settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from autoscaling.prices.node_prices import NodePrice, PricedNode
from base.errors import ForecastError

ASSETS_PATH: Final = "/assets?window=24h"
"""A day: a node that was there for an hour of it has a price, and a change of prices counts the day after."""

_LEAST_MINUTES: Final = 10.0
"""OpenCost measures in steps of 5 minutes and more: of a shorter life the rate is not known."""


class NotOpenCost(ForecastError):
    """The answer is not that of OpenCost."""


class OpenCostPrices:
    """Implements PriceSource. Nodes are known by their names."""

    def __init__(self, per_hour: Mapping[str, float]) -> None:
        self._per_hour = dict(per_hour)

    def price_of(self, node: PricedNode) -> NodePrice | None:
        found = self._per_hour.get(node.name)
        return None if found is None else NodePrice(found, "OpenCost, last 24 h")


def prices_in(answer: bytes) -> dict[str, float]:
    """Price of an hour by node name, of the answer to ASSETS_PATH. Raises NotOpenCost."""
    try:
        body = msgspec.json.decode(answer)
        data = body["data"]
        if not isinstance(data, dict | list):
            raise TypeError(f"data is {data!r:.40}")
        return dict(_nodes(data))
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise NotOpenCost(f"it does not answer as OpenCost: {' '.join(str(error).split())[:100]}") from error


def _nodes(data: dict[str, Any] | list[Any]) -> Iterator[tuple[str, float]]:
    """Names and prices; without nodes that cost nothing, of which OpenCost does not know the price."""
    sets = [data] if isinstance(data, dict) else [one for one in data if one]
    for assets in sets:
        for asset in assets.values():
            if asset["type"] != "Node":
                continue
            minutes, cost = float(asset["minutes"]), float(asset["totalCost"])
            if minutes >= _LEAST_MINUTES and 0 < cost < float("inf"):
                yield str(asset["properties"]["name"]), cost / minutes * 60
