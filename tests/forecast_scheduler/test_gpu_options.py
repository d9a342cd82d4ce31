"""Settings of the GPU profile mean what the options mean that they become."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from forecast.errors import InputError
from forecast_scheduler.gpu_options import (
    dra_options,
    idle_cpu_options,
    judge_maker,
    mix_options,
    tide_options,
)
from forecast_scheduler.gpu_settings import GpuSettings
from forecast_scheduler.settings import Settings, with_options
from scheduler.profiles.gpu.dra.options import DraOptions
from scheduler.profiles.gpu.fragmentation.balanced import Balanced
from scheduler.profiles.gpu.fragmentation.live_mix import MixOptions
from scheduler.profiles.gpu.fragmentation.packing import Packing
from scheduler.profiles.gpu.fragmentation.shapes import PodShape, ShapeMix
from scheduler.profiles.gpu.idle_cpu.options import IdleCpuOptions
from scheduler.profiles.gpu.tide.options import TideOptions
from tests.processes.scorer_process import ROOT
from tests.scheduler.profiles.gpu.fragmentation.cases import node_states


def settings(**changed: Any) -> GpuSettings:
    return with_options(Settings(), {"schedule": {"gpu": changed}}).schedule.gpu


def test_defaults_are_those_of_the_options() -> None:
    ours = GpuSettings()
    assert mix_options(ours) == MixOptions()
    assert dra_options(ours) == DraOptions()
    assert idle_cpu_options(ours, dry_run=False) == IdleCpuOptions()


def test_what_is_set_gets_there() -> None:
    assert idle_cpu_options(settings(idle_cpu={"memory_per_gpu": 2}), dry_run=True).memory_per_gpu == 2 * 2**30
    assert settings(tide={"grace": "10m"}).tide == TideOptions(grace=600)


@pytest.mark.parametrize("is_dry_run", [False, True])
def test_a_tide_may_be_tried_out_while_pods_are_placed(is_dry_run: bool) -> None:
    assert tide_options(settings(tide={"dry_run": is_dry_run}), dry_run=False).dry_run is is_dry_run


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


@pytest.mark.parametrize(
    ("group", "page"),
    [
        ("mix", "gpu-placement.md"),
        ("balance", "gpu-placement.md"),
        ("dra", "dra.md"),
        ("idle_cpu", "idle-cpu.md"),
    ],
)
def test_the_page_of_a_group_names_its_settings(group: str, page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    block = getattr(GpuSettings(), group)
    missing = {name for name in type(block).model_fields if not re.search(rf"`{name}`|\b{name}:", text)}
    assert missing == set()
