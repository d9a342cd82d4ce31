"""`kubectl forecast`: kubectl finds the program as a plugin, by its name on PATH."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from testing.servers.kubectl.binary import kubectl


def test_kubectl_runs_the_same_program() -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    ran = subprocess.run(
        [str(kubectl()), "forecast", "--version"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == f"forecast-scheduler {version('forecast-scheduler')}"
