"""The four dashboards as files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dashboards.panels.gpu_and_jobs import gpu_and_jobs
from dashboards.panels.layout import Board, json_text
from dashboards.panels.model import model
from dashboards.panels.peaks import peaks
from dashboards.panels.scheduling import scheduling
from forecast.hot_share import HOT_SHARE

_FOLDER: Final = "grafana"


def boards(hot: float = HOT_SHARE) -> dict[str, Board]:
    """By name of the file. hot: share of its capacity above which a node is hot"""
    return {"peaks": peaks(hot), "scheduling": scheduling(hot), "gpu-and-jobs": gpu_and_jobs(), "model": model()}


def files(cluster: Mapping[str, str] | None = None, hot: float = HOT_SHARE) -> dict[str, str]:
    """Path below dashboards/ -> text. cluster: labels that all queries select."""
    return {f"{_FOLDER}/{name}.json": json_text(board, cluster or {}) for name, board in boards(hot).items()}
