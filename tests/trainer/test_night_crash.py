"""A nightly run that is killed, or whose disk fails, at any step: readers and the next night go on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.night_process import FAILED, FINISHED, FORGIVEN

ROOT = Path(__file__).parents[2]
KILLED = -9


def nights(*arguments: object) -> list[dict[str, Any]]:
    """What became of each pair of nights: one that is disturbed, and one that is left alone."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.trainer.night_process", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def assert_old_or_new(reports: list[dict[str, Any]], *, one_step: bool = True) -> None:
    """Readers find the model of the disturbed night or of the one before, and the next night publishes.

    one_step : disturbed later, the night is never found to have come less far
    """
    is_new = [report["used"] == 2 * report["at"] + 1 for report in reports]
    before = [None, *(report["then"] for report in reports)]
    used = [2 * r["at"] + 1 if new else old for r, new, old in zip(reports, is_new, before, strict=False)]
    assert [report["used"] for report in reports] == used
    assert [(report["again"], report["then"]) for report in reports] == [(FINISHED, 2 * r["at"] + 2) for r in reports]
    assert not is_new[0] and is_new[-1]
    assert not one_step or is_new == sorted(is_new)


def test_a_night_killed_at_any_call_leaves_the_old_or_the_new_model_and_no_leftovers(tmp_path: Path) -> None:
    reports = nights("kill", tmp_path)
    assert len(reports) > 60, "the calls into the disk were not intercepted"
    assert [report["status"] for report in reports] == [KILLED] * (len(reports) - 1) + [FINISHED]
    assert_old_or_new(reports)
    assert list(tmp_path.rglob("*.tmp-*")) == []


@pytest.mark.long
@pytest.mark.parametrize("error", ["ENOSPC", "EIO", "EROFS", "EACCES", "ENOENT"])
def test_a_call_that_fails_is_an_error_of_ours_or_does_no_harm(tmp_path: Path, error: str) -> None:
    reports = nights(error, tmp_path)
    assert len(reports) > 60
    assert {report["status"] for report in reports} <= {FAILED, FORGIVEN, FINISHED}
    assert_old_or_new(reports, one_step=False)
    assert list(tmp_path.rglob("*.tmp-*")) == []
