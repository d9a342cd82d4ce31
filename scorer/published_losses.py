"""Losses that a model was published with: of its backtest, else of the gate's comparison on the nights before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forecast.backtest import OURS

__all__ = ["published_losses"]


def published_losses(backtest: Mapping[str, Any], info: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """(resource, quantile) -> pinball loss, lower is better; what cannot be read is left out.

    backtest, info : as in the manifest
    """
    gate = info.get("gate")
    sources = [
        {name: _inner(figures, OURS) for name, figures in _items(backtest.get("resources"))},
        {name: _inner(figures, "candidate") for name, figures in _items(gate)},
    ]
    losses: dict[tuple[str, str], float] = {}
    for source in sources:
        for resource, score in source.items():
            for quantile, key in (("0.5", "loss50"), ("0.95", "loss95")):
                value = score.get(key)
                if isinstance(value, int | float):
                    losses.setdefault((resource, quantile), float(value))
    return losses


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, Mapping) else []


def _inner(value: Any, key: str) -> Mapping[str, Any]:
    inner = value.get(key) if isinstance(value, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}
