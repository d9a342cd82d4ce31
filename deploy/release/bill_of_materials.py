"""The SBOM: the Python packages of the image in CycloneDX, read out of an environment that has the same ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from deploy.release.version import ROOT


def write_bill_of_materials(directory: Path, version: str, *, moment: int) -> None:
    """Write forecast-scheduler-VERSION.cdx.json. Raises RuntimeError. Installs into a directory that is removed.

    moment : Unix time of the document
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"]]
    for extra in image_extras():
        wanted += project["optional-dependencies"][extra]
    uv, constraints = [sys.executable, "-m", "uv"], str(ROOT / "constraints.txt")
    with TemporaryDirectory() as scratch:
        environment = str(Path(scratch) / "environment")
        _run([*uv, "venv", "--quiet", "--python", sys.executable, environment], moment)
        (Path(scratch) / "requirements.txt").write_text("\n".join(wanted))
        install = ["pip", "install", "--quiet", "--python", environment, "--constraint", constraints]
        _run([*uv, *install, "--requirement", f"{scratch}/requirements.txt"], moment)
        tool = [*uv, "tool", "run", "--quiet", "--constraints", constraints, "--from", "cyclonedx-bom", "cyclonedx-py"]
        options = ["--output-reproducible", "--no-validate", "--pyproject", str(ROOT / "pyproject.toml")]
        output = ["--output-file", str(directory / f"forecast-scheduler-{version}.cdx.json")]
        _run([*tool, "environment", *options, *output, environment], moment)


def image_extras() -> list[str]:
    """Return the extras that the Dockerfile installs."""
    found = re.search(r"^ARG EXTRAS=(\S*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    return found[1].split(",") if found and found[1] else []


def _run(command: Sequence[str], moment: int) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "SOURCE_DATE_EPOCH": str(moment)})
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr[-2000:]}")
