"""Losses that a model was published with: of its backtest, else of the gate's comparison on the nights before.

Where the gate held a resource back the arrays are those of the model before, and so is the loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forecast.backtest import OURS


def published_losses(backtest: Mapping[str, Any], info: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """(resource, quantile) -> pinball loss, lower is better; what cannot be read is left out.

    backtest, info : as in the manifest
    """
    gate = info.get("gate")
    sources = [
        {name: _inner(figures, OURS) for name, figures in _items(backtest.get("resources"))},
        {name: _inner(figures, _judged(figures)) for name, figures in _items(gate)},
    ]
    losses: dict[tuple[str, str], float] = {}
    for source in sources:
        for resource, score in source.items():
            for quantile, key in (("0.5", "loss50"), ("0.95", "loss95")):
                value = score.get(key)
                if isinstance(value, int | float):
                    losses.setdefault((resource, quantile), float(value))
    return losses


def _judged(result: Any) -> str:
    """Whose arrays the gate let be published; `verdict` as in trainer/gate/verdict.py."""
    return "current" if isinstance(result, Mapping) and result.get("verdict") == "held_back" else "candidate"


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, Mapping) else []


def _inner(value: Any, key: str) -> Mapping[str, Any]:
    inner = value.get(key) if isinstance(value, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}
