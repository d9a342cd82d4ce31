"""Remarks on the figures of a replay, the same for terminal and page. They read what `Replay.to_json` writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def no_gap_remarks(no_gap: Mapping[str, Any], resources: Iterable[str]) -> list[str]:
    """Why there is no gap to close, one line for each figure without one.

    no_gap    : as `scorer.replay.replay_figures.no_gap` has it
    resources : in the order of the columns
    """
    named = [("hot", no_gap["hot_share"]), *((f"{name} CV", no_gap["peak_cv"].get(name)) for name in resources)]
    return [f"– {name}: {reason}" for name, reason in named if reason is not None]


def regression_remark(name: str, attribution: Mapping[str, Any]) -> str:
    """How well the moved part of a resource is known that pods are not measured for.

    attribution : as `scorer.replay.recording.Attribution.to_json` has it
    """
    moved = f"{attribution['moved']:.0%} of it moves with pods, the rest stays on its node"
    return f"{name}*: by regression, error {attribution['error']:.0%}; {moved}"
