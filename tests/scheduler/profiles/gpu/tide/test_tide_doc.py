"""docs/use/tide.md names every metric."""

from __future__ import annotations

from pathlib import Path

from scheduler.profiles.gpu.tide.metrics import TideMetrics

DOC = (Path(__file__).parents[5] / "docs" / "use" / "tide.md").read_text()


def test_every_metric_is_in_the_doc() -> None:
    names = set()
    for collector in TideMetrics().collectors:
        for metric in collector.describe() if hasattr(collector, "describe") else collector.collect():
            names.add(metric.name + ("_total" if metric.type == "counter" else ""))
    assert names and {name for name in names if f"`{name}" not in DOC} == set()
