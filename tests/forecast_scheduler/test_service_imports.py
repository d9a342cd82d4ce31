"""Services run long and in replicas: what only the trainer needs is not in their memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_IMPORTED = """
import sys
import forecast_scheduler.commands.scorer.scorer_setup, forecast_scheduler.commands.extender_setup
import forecast_scheduler.commands.schedule.schedule_serve
import scorer.service.app, extender.service.extender_app
print(*sorted({name.partition(".")[0] for name in sys.modules} & set(sys.argv[1:])))
"""
_HEAVY = ("pandas", "pyarrow", "scipy", "sklearn", "statsmodels", "plotly", "holidays")


def test_services_import_nothing_that_only_the_trainer_needs() -> None:
    said = subprocess.run(
        [sys.executable, "-c", _IMPORTED, *_HEAVY], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert said.stdout.split() == []
