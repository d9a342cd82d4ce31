"""Which test files run when: the fast ones, the default run (`make test`), the named parts of `make test-long`.

    fast        start no server or process of ours and fit no model: as their imports tell
    default     the fast ones and those of JOURNEYS
    random      the fast ones with hundreds of random cases each, and what is marked `long` in them
    the others  all that is not fast, by the folders of PARTS; each part is complete in itself

`pytest --part NAME` takes one of them. Without it pytest runs what it is given.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parent

JOURNEYS: Final = (
    # A journey with real servers for each command that touches a cluster.
    "trainer/prometheus/test_cluster.py",  # train
    "processes/test_following_the_cluster.py",  # scorer
    "extender/real/test_protocol.py",
    "schedule/test_preempting.py",  # schedule, online
    "schedule/test_gpu_devices.py",  # gpu
    "schedule/test_jobs_queues.py",  # job
    "schedule/test_shards.py",
    "schedule/test_tenants.py",
    "advise/test_advice.py",
    "rebalance/test_execution.py",
    "autoscale/test_external_metrics.py",
    "processes/test_webhook.py",
    "forecast_scheduler/commands/demo/test_recorded_cluster.py",
    # Models that are fitted, and the command line: nothing fast covers them.
    "forecast/",
    "trainer/gate/",
    "trainer/run_report/",
    "trainer/doctor/",
    "forecast_scheduler/",
)
"""What the default run has in addition to the fast files. Paths below tests/, or beginnings of them."""

PARTS: Final = {
    "soak": ("soak/", "schedule/test_replicas.py"),
    "differential": ("differential/", "scheduler/profiles/job/cron/test_robfig.py"),
    "models": ("forecast/", "trainer/", "nights/", "data/", "scorer/replay/", "rebalancer/", "contracts/"),
    "services": ("scorer/", "extender/", "serving/", "processes/", "advise/", "advisor/", "admission/"),
    "loops": ("schedule/", "scheduler/", "placement/", "cluster/", "kube/", "tenants/", "rules_by_profile/"),
    "hands": ("rebalance/", "autoscale/", "autoscaling/"),
    "installation": ("",),  # deploy, image, dashboards, browser, the command line, benchmarks, docs
}
"""Beginnings of paths below tests/, by part: the first that fits counts."""

_STARTS_SOMETHING: Final = re.compile(
    r"testing\.(servers|processes|soak|local_cluster)|\bsubprocess\b|\bmultiprocessing\b"
    r"|tests\.(processes|differential|entry_points|browser|dashboards)\."
    r"|from benchmarks\.|with_retry|serving\.server import"
)
_FITS_MODELS: Final = re.compile(
    r"import (fit|fitted|backtest|train_and_publish|synthetic_history|nightly_model|run)\b"
    r"|recorded_evening|small_history|\"sample\""
)


def belongs(file: Path, part: str) -> bool:
    """Return whether a test file runs in this part."""
    path = file.relative_to(TESTS).as_posix()
    match part:
        case "fast" | "random":
            return is_fast(file)
        case "default":
            return is_fast(file) or path.startswith(JOURNEYS)
        case _:
            return not is_fast(file) and part == long_part(path)


def long_part(path: str) -> str:
    """Return the part of `make test-long` that has a file that is not fast."""
    return next(part for part, beginnings in PARTS.items() if path.startswith(beginnings))


def is_fast(file: Path) -> bool:
    """Return whether neither a test file nor the conftest.py files above it start or fit anything."""
    texts = [file.read_text(), *(_text(one / "conftest.py") for one in file.parents if TESTS in one.parents)]
    return not any(_STARTS_SOMETHING.search(text) or _FITS_MODELS.search(text) for text in texts)


@cache
def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


if __name__ == "__main__":  # the Makefile asks for the names
    print("random", *PARTS)
