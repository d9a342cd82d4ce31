"""Which test files run when: `make test-fast`, the default run of `make test`, the named parts of `make test-long`.

    fast        start no server or process of ours and fit no model, as their imports tell; take less than FAST_SECONDS
    default     those that need more time, too; of the others those that take less than SHORT_SECONDS, and JOURNEYS
    random      what starts and fits nothing, with hundreds of random cases each, and what is marked `long` there
    the others  all that starts or fits something, by the folders of PARTS; each part is complete in itself

`pytest --part NAME` takes one of them. Without it pytest runs what it is given. Seconds are those of
tests/durations.json; a file that is not there yet is short.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parent
DURATIONS: Final = TESTS / "durations.json"

FAST_SECONDS: Final = 4.0
SHORT_SECONDS: Final = 8.0

JOURNEYS: Final = (
    "advise/test_advice.py",
    "autoscale/test_hands.py",
    "extender/real/test_protocol.py",
    "forecast_scheduler/commands/demo/test_recorded_cluster.py",
    "processes/test_following_the_cluster.py",  # scorer
    "processes/test_webhook.py",
    "rebalance/test_execution.py",
    "schedule/test_gpu_devices.py",
    "schedule/test_jobs_queues.py",
    "schedule/test_preempting.py",  # online
    "schedule/test_shards.py",
    "schedule/test_tenants.py",
    "trainer/prometheus/test_cluster.py",  # train
    # What a change of words, rules or alerts breaks elsewhere.
    "dashboards/test_causes.py",
    "dashboards/test_rules_up_to_date.py",
    "docs/test_names_in_prose.py",
    # Fits and servers that no shorter test covers.
    "docs/test_demo_tables.py",
    "forecast/test_backtest.py",
    "forecast/test_fit.py",
    "forecast/test_fit_job_owners.py",
    "serving/test_server.py",
    "test_import_directions.py",
    "trainer/gate/test_gate_run.py",
    "trainer/prometheus/test_failures.py",
    "trainer/run_report/test_run_report.py",
)
"""Files of the default run however long they take, first a journey with real servers for each command that touches a
cluster. In these files, too, `long` marks what the default run leaves out."""

_NEVER_IN_DEFAULT: Final = ("attacks/", "browser/", "differential/", "image/", "nights/", "soak/")
"""They need programs that nothing else needs, or are parts of their own."""

PARTS: Final = {
    "attacks": ("attacks/",),
    "soak": ("soak/", "schedule/test_replicas.py"),
    "differential": ("differential/", "profiles/job/cron/test_robfig.py"),
    "models": ("forecast/", "trainer/", "nights/", "data/", "scorer/replay/", "rebalancer/", "contracts/"),
    "services": ("scorer/", "extender/", "serving/", "processes/", "advise/", "advisor/", "admission/"),
    "loops": (
        "schedule/",
        "scheduler/",
        "placement/",
        "cluster/",
        "live_cluster/",
        "kube/",
        "tenants/",
        "rules_by_profile/",
    ),
    "hands": ("rebalance/", "autoscale/", "autoscaling/"),
    "installation": ("",),  # deploy, image, dashboards, browser, the command line, benchmarks, docs
}
"""Beginnings of paths below tests/, by part: the first that fits counts."""

_STARTS_SOMETHING: Final = re.compile(
    r"testing\.(servers|processes|soak|local_cluster|scrapes)|\bsubprocess\b|\bmultiprocessing\b"
    r"|tests\.(processes|differential|browser|dashboards)\."
    r"|from benchmarks\.|with_retry|serving\.server import"
)
_FITS_MODELS: Final = re.compile(
    r"import (fit|fitted|backtest|train_and_publish|synthetic_history|nightly_model|run)\b"
    r"|recorded_evening|small_history|\"sample\""
)


def belongs(file: Path, part: str) -> bool:
    """Return whether a test file runs in this part."""
    path, starts_nothing = file.relative_to(TESTS).as_posix(), _starts_nothing(file)
    seconds = recorded().get(path, 0.0)
    match part:
        case "fast":
            return starts_nothing and seconds < FAST_SECONDS
        case "random":
            return starts_nothing
        case "default":
            short = seconds < SHORT_SECONDS and not path.startswith(_NEVER_IN_DEFAULT)
            return starts_nothing or short or path in JOURNEYS
        case _:
            return not starts_nothing and part == long_part(path)


def long_part(path: str) -> str:
    """Return the part of `make test-long` that has a file which starts or fits something."""
    return next(part for part, beginnings in PARTS.items() if path.startswith(beginnings))


@cache
def recorded() -> dict[str, float]:
    """Return wall seconds by path of the test file below tests/, as recorded in the repository."""
    found = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
    return {path: float(wall) for path, (wall, _) in found.items()}


def _starts_nothing(file: Path) -> bool:
    """Return whether neither a test file nor the conftest.py files above it start or fit anything."""
    texts = [file.read_text(), *(_text(one / "conftest.py") for one in file.parents if TESTS in one.parents)]
    return not any(_STARTS_SOMETHING.search(text) or _FITS_MODELS.search(text) for text in texts)


@cache
def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


if __name__ == "__main__":  # the Makefile asks for the names
    print("random", *PARTS)
