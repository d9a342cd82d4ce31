"""What `make setup` prints of pip, and that it fails only if pip does."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

_MAKEFILE = Path(__file__).parents[1] / "Makefile"


def _run(said: str, *, after: str = "true") -> subprocess.CompletedProcess[str]:
    """Run a command that prints `said` and ends as `after` does, through the pipe of the Makefile."""
    (pipe,) = re.findall(r"^SAY := (.*)$", _MAKEFILE.read_text(encoding="utf-8"), re.MULTILINE)
    script = f"set -o pipefail; {{ cat; {after}; }} {pipe}"
    return subprocess.run(["bash", "-c", script], input=said, capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        pytest.param("Requirement already satisfied: rich in x (15.0.0)\n", "", id="all is installed"),
        pytest.param("", "", id="nothing"),
        pytest.param("Collecting rich\n  Downloading rich.whl (3 kB)\n", "  Downloading rich.whl (3 kB)\n", id="one"),
        pytest.param("  Using cached rich.whl\n", "  Using cached rich.whl\n", id="in the cache"),
        pytest.param("Successfully installed " + "a" * 200, "Successfully installed " + "a" * 77, id="a long line"),
    ],
)
def test_packages_are_shown_and_nothing_to_show_is_no_failure(said: str, shown: str) -> None:
    ran = _run(said)
    assert (ran.returncode, ran.stdout.rstrip("\n"), ran.stderr) == (0, shown.rstrip("\n"), "")


def test_a_failure_of_pip_is_one_of_the_target() -> None:
    assert _run("Collecting rich\n", after="false").returncode == 1
