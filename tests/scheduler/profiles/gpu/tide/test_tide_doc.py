"""docs/tide.md says what there is: metrics, settings and their defaults."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from forecast.durations import duration_seconds
from scheduler.profiles.gpu.tide.metrics import TideMetrics
from scheduler.profiles.gpu.tide.options import TideOptions

DOC = (Path(__file__).parents[5] / "docs" / "tide.md").read_text()


def test_every_metric_is_in_the_doc() -> None:
    names = set()
    for collector in TideMetrics().collectors:
        for metric in collector.describe() if hasattr(collector, "describe") else collector.collect():
            names.add(metric.name + ("_total" if metric.type == "counter" else ""))
    assert names and {name for name in names if f"`{name}" not in DOC} == set()


def documented() -> dict[str, object]:
    block = next(
        text for text in re.findall(r"```yaml\n(.*?)```", DOC, re.S) if "tide:" in text and "schedule:" in text
    )
    said: dict[str, object] = yaml.safe_load(block)["schedule"]["gpu"]["tide"]
    return said


@pytest.mark.parametrize("name", list(TideOptions.model_fields))
def test_every_setting_is_in_the_doc_with_its_default(name: str) -> None:
    default, said = getattr(TideOptions(), name), documented()[name]
    if isinstance(said, str) and said:
        assert duration_seconds(said) == default
    else:
        assert said == (list(default) if isinstance(default, tuple) else default)
