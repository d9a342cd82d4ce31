"""What nodes use, as Prometheus scrapes it: what their pods request, by how much of it is used now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from forecast.resources import RESOURCES

_OF_A_CORE: Final = {"cpu": 1.0, "memory": 2e9, "disk": 2e6, "network": 1e7, "log": 2e4}
"""Base units that a pod uses of each resource beside a core."""
_BASE_CORES: Final = 0.4


def usage_text(cores: Mapping[str, float], share: float) -> str:
    """forecast:node_usage of each node, as the recording rules have it.

    cores : requested by pods on each node;   share : of their requests that pods use now
    """
    lines = ["# TYPE forecast:node_usage gauge"]
    for node, requested in sorted(cores.items()):
        used = _BASE_CORES + requested * share
        for resource in RESOURCES:
            amount = used * _OF_A_CORE[resource.name]
            lines.append(f'forecast:node_usage{{node="{node}",resource="{resource.name}"}} {amount!r}')
    return "\n".join(lines) + "\n"
