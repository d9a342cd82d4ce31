"""How figures are written: Grafana's names of units, by what is measured.

https://github.com/grafana/grafana/blob/v11.6.0/packages/grafana-data/src/valueFormats/categories.ts
"""

from __future__ import annotations

from typing import Final

from forecast.resources import RESOURCES

SHARE: Final = "percentunit"
SECONDS: Final = "s"
COUNT: Final = "short"
RATIO: Final = "none"
PER_SECOND: Final = "suffix:/s"
CORES: Final = "suffix: cores"
BYTES: Final = "bytes"
DATE: Final = "dateTimeAsLocal"

_OF_RESOURCE: Final = {"cores": CORES, "bytes": BYTES, "bytes/s": "Bps"}


def resource_unit(resource: str) -> str:
    """Of one of forecast.resources.RESOURCES, by name."""
    return _OF_RESOURCE[next(one.unit for one in RESOURCES if one.name == resource)]
