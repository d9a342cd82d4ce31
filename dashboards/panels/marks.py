"""Marks on all dashboards: when our placements began, and when another model came into use.

Both are moments since the beginning of the time that is shown: what is there now and was not there before.
"""

from __future__ import annotations

from dashboards.panels.layout import Annotation
from dashboards.panels.plots import Query
from dashboards.panels.selecting import where

_OURS = "by (cluster)"


def marks() -> list[Annotation]:
    """Adoption, and models."""
    placed = f"sum {_OURS} (forecast_schedule_attempts_total{where(result='scheduled')})"
    bound = f"forecast_decisions_total{where(mode='active', outcome='as_advised|elsewhere')}"  # a shadow tells nobody
    advised = f"sum {_OURS} ({bound})"
    earlier_placed = _earlier(f"forecast_schedule_attempts_total{where(result='scheduled')}", _OURS)
    earlier_advised = _earlier(bound, _OURS)
    version = "by (cluster, version)"
    info = f"forecast_model_info{where()}"
    return [
        Annotation(
            "First pods placed by our loops",
            Query(f"({placed} > 0) unless ({earlier_placed} > 0)", "{{cluster}}"),
            "blue",
        ),
        Annotation(
            "First pods bound after our advice",
            Query(f"({advised} > 0) unless ({earlier_advised} > 0)", "{{cluster}}"),
            "purple",
        ),
        Annotation(
            "Another model",
            Query(f"max {version} ({info}) unless {_earlier(info, version)}", "{{cluster}} {{version}}"),
            "orange",
        ),
    ]


def _earlier(series: str, grouping: str) -> str:
    return f"max {grouping} (max_over_time({series}[$__range] offset $__interval))"
