"""The MutatingWebhookConfiguration that deploy/ ships, for a webhook on this machine."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

_CONFIGURATION = Path(__file__).parents[2] / "deploy" / "base" / "webhook" / "configuration.yaml"


def shipped_webhook(url: str, ca: Path, **fields: Any) -> dict[str, Any]:
    """Return the shipped configuration for a webhook at `url`, whose certificate `ca` signed; `fields` replace parts of
    its one webhook."""
    (shipped,) = yaml.safe_load_all(_CONFIGURATION.read_text())
    (one,) = shipped["webhooks"]
    one["clientConfig"] = {"url": f"{url}/mutate", "caBundle": base64.b64encode(ca.read_bytes()).decode()}
    one.update(fields)
    return dict(shipped)
