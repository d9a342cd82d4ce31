"""docs/use/gpu.md names what there is."""

from __future__ import annotations

from pathlib import Path

from placement.devices import filter as device_filter
from placement.devices.annotations import GPU_INDEX, MOST_DEVICES, sharing_annotations
from placement.devices.demand import GPU_MILLI
from placement.devices.metrics import DeviceCollector
from tests.placement.devices.device_world import DeviceWorld

DOC = (Path(__file__).parents[3] / "docs" / "use" / "gpu.md").read_text()


def test_every_metric_is_listed() -> None:
    for family in DeviceCollector(DeviceWorld().table).collect():
        assert f"`{family.name}" in DOC


def test_what_pods_say_and_are_told_is_named() -> None:
    for key in (GPU_MILLI, GPU_INDEX, *sharing_annotations(0, 1, 1, 0.0)):
        assert f"`{key}" in DOC
    assert str(MOST_DEVICES) in DOC


def test_every_reason_is_explained() -> None:
    reasons = [value for name, value in vars(device_filter).items() if name.startswith("_") and "node(s)" in str(value)]
    assert len(reasons) == 7
    for reason in reasons:
        assert f"| {reason}" in DOC
