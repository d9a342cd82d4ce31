"""The entry of the extender in the configuration of kube-scheduler that deploy/ ships."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from testing.servers.control_plane.kube_scheduler import extender

_CONFIGURATION = Path(__file__).parents[2] / "deploy" / "kube-scheduler" / "scheduler-config.yaml"


def shipped_extender(url: str, **fields: Any) -> dict[str, Any]:
    """Return the shipped entry, for an extender at `url` without TLS; `fields` replace parts of it."""
    entry = dict(yaml.safe_load(_CONFIGURATION.read_text())["extenders"][0])
    del entry["tlsConfig"]
    return extender(url, **(entry | {"urlPrefix": url, "enableHTTPS": False} | fields))
