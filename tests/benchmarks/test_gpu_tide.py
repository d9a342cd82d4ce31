"""The simulated tide on a made-up day: inference that doubles in the evening, and is known beforehand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.gpu_tide import Played, Scene, drawn_scene, play
from benchmarks.gpu_tide_week import TideWeek
from scheduler.profiles.gpu.tide.options import TideOptions

OPTIONS = TideOptions(every=300.0)


@pytest.fixture(scope="module")
def scene() -> Scene:
    """One day of sixteen services."""
    day = np.full(48, 2.0)
    day[36:46] = 4.0
    services = np.tile(day, (16, 1))
    week = TideWeek(
        services=tuple(f"shop/Deployment/{n}" for n in range(16)),
        starts=1_779_148_800.0 + 1800.0 * np.arange(49, dtype=np.float64),
        replicas=services,
        before=services,
        forecast=np.tile(day, (16, 1, 7)),
    )
    return drawn_scene(week, 0, OPTIONS)


def played(scene: Scene, rule: str) -> Played:
    return play(scene, rule, OPTIONS)


def test_the_tide_uses_what_inference_leaves_and_inference_never_lacks_any(scene: Scene) -> None:
    fixed, tide, exact = (played(scene, rule) for rule in ("fixed, past peak", "tide", "true future"))
    assert fixed.shortfall == tide.shortfall == exact.shortfall == 0
    assert fixed.gpu_hours < tide.gpu_hours <= exact.gpu_hours and tide.moves > 0


def test_who_waits_until_inference_lacks_gpus_is_late(scene: Scene) -> None:
    reactive = played(scene, "reactive")
    assert reactive.shortfall >= 5 and reactive.lacking > 0
