"""From which share of its capacity on a node is hot, if the setting `hot_share` does not say otherwise."""

from __future__ import annotations

from typing import Final

HOT_SHARE: Final = 0.8
"""There latency leaves its flat part. The default of the setting, and nothing else: who calls a node hot is given the
setting."""
