"""What the GPU profile makes of its settings, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forecast.errors import InputError
from forecast_scheduler.settings.document import Settings, with_options
from scheduler.profiles.gpu.fragmentation.balanced import Balanced
from scheduler.profiles.gpu.fragmentation.packing_cost import Packing
from scheduler.profiles.gpu.fragmentation.shapes import PodShape, ShapeMix
from scheduler.profiles.gpu.options import GpuOptions
from scheduler.profiles.gpu.tables import judge_maker, with_dry_run
from scheduler.profiles.gpu.tide.options import TideOptions
from tests.scheduler.profiles.gpu.fragmentation.cases import node_states


def settings(**changed: Any) -> GpuOptions:
    return with_options(Settings(), {"schedule": {"gpu": changed}}).schedule.gpu


def test_what_is_set_gets_there() -> None:
    assert settings(idle_cpu={"memory_per_gpu": 2}).idle_cpu.memory_bytes_per_gpu == 2 * 2**30
    assert settings(tide={"grace": "10m"}).tide == TideOptions(grace=600)


@pytest.mark.parametrize("is_dry_run", [False, True])
def test_a_tide_may_be_tried_out_while_pods_are_placed(is_dry_run: bool) -> None:
    tide = settings(tide={"dry_run": is_dry_run}).tide
    assert with_dry_run(tide, False).dry_run is is_dry_run
    assert with_dry_run(tide, True).dry_run


def test_placement_is_a_choice() -> None:
    mix, nodes = ShapeMix((PodShape(1000, 0, 1, 1000),), np.ones(1)), node_states([(8000, 8192, 0, [1000])])
    assert isinstance(judge_maker(settings())(mix, ["T4"], nodes), Packing)
    assert isinstance(judge_maker(settings(placement="balanced"))(mix, ["T4"], nodes), Balanced)


@pytest.mark.parametrize(
    "changed",
    [
        {"placement": "random"},
        {"idle_cpu": {"hours": 1, "lead": "2h"}},
        {"tide": {"every": 0}},
    ],
)
def test_what_cannot_work_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        settings(**changed)
