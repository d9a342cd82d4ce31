"""The sdist, and the wheel that is built out of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from deploy.archive import EARLIEST
from deploy.release.version import ROOT


class Distributions(NamedTuple):
    """Paths of the two archives."""

    sdist: Path
    wheel: Path


def build_distributions(directory: Path, *, moment: int = EARLIEST) -> Distributions:
    """Build both into an empty directory; the same files and moment give the same bytes. Raises RuntimeError.

    moment : Unix time that the files in the archives get
    """
    # The backend is the one of constraints.txt, which the environment has: no index is asked.
    command = [sys.executable, "-m", "uv", "build", "--offline", "--no-build-isolation", "--quiet"]
    done = subprocess.run(
        [*command, "--python", sys.executable, "--out-dir", str(directory), str(ROOT)],
        env={**os.environ, "SOURCE_DATE_EPOCH": str(moment)},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"sdist and wheel were not built: {done.stderr[-2000:]}")
    (directory / ".gitignore").unlink()  # uv hides what it built from git
    (sdist,) = directory.glob("*.tar.gz")
    (wheel,) = directory.glob("*.whl")
    return Distributions(sdist, wheel)
