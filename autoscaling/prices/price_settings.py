"""Settings of prices: what a node costs. All reports that name money take them from here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from base.setting_group import SettingGroup


class PriceOptions(SettingGroup):
    """What nodes cost (docs/use/money.md). A node has the price of the first source that knows it, in this order."""

    currency: str = Field(default="USD", pattern="^[A-Z]{3}$")
    """Currency of all prices and of every report: three letters of ISO 4217. Nothing is converted."""

    per_hour: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    """Price of one node for an hour, by node group, instance type or labels, such as {"m5.xlarge": 0.23, "pool=web":
    0.4}."""

    file: Path | None = None
    """CSV file of prices, with columns as docs/use/money.md has them."""

    opencost: str | None = None
    """URL of OpenCost's API, such as http://opencost.opencost:9003, which knows each node by its name."""

    list_prices: bool = True
    """Whether nodes that no other source knows have the public list price of their instance type, on demand."""
