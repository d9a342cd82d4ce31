"""A nightly run that is killed, or whose disk or object store fails, at any step: readers and the next night go on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from testing.servers.object_store import Fault, ObjectStoreServer, Request
from tests.trainer.night_process import FAILED, FINISHED, FORGIVEN

ROOT = Path(__file__).parents[2]
KILLED = -9


def nights(*arguments: object, environment: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """What became of each pair of nights: one that is disturbed, and one that is left alone."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.trainer.night_process", *map(str, arguments)],
        cwd=ROOT, env={**os.environ, **(environment or {})}, capture_output=True, text=True, timeout=900,
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
    assert not (tmp_path / "train-lease.json").exists()


@pytest.mark.long
@pytest.mark.parametrize("error", ["ENOSPC", "EIO", "EROFS", "EACCES", "ENOENT"])
def test_a_call_that_fails_is_an_error_of_ours_or_does_no_harm(tmp_path: Path, error: str) -> None:
    reports = nights(error, tmp_path)
    assert len(reports) > 60
    assert {report["status"] for report in reports} <= {FAILED, FORGIVEN, FINISHED}
    assert_old_or_new(reports, one_step=False)
    assert list(tmp_path.rglob("*.tmp-*")) == []


def nights_on_an_object_store(faults: Iterable[Callable[[Request], bool]], *, late: bool) -> list[dict[str, Any]]:
    """Each night is killed by the first request that its condition holds for; the last one is left alone."""
    conditions = iter(faults)
    with ObjectStoreServer() as store:

        def armed(pid: int) -> None:
            is_fatal = next(conditions, None) if pid else None
            fault = Fault(kill=pid, late=late)
            store.arm(lambda request: fault if is_fatal is not None and is_fatal(request) else None)

        store.on_ready(armed)
        reports = nights("kill-at-request", store.url, store.control, environment=store.environment)
        top = {key.split("/")[1] for key in store.objects}
        assert len(top - {"latest.json", "issued"}) == 2, f"versions that no reader needs are left: {top}"
        assert not store.uploads
    assert [report["status"] for report in reports] == [KILLED] * (len(reports) - 1) + [FINISHED]
    return reports


@pytest.mark.parametrize("late", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_night_killed_around_its_decisive_requests(late: bool) -> None:
    """late: the store has done what it was asked, and the answer does not arrive."""
    written = ("manifest.json", "latest.json")
    reports = nights_on_an_object_store([partial(_writes, name) for name in written], late=late)
    assert len(reports) == len(written) + 1
    assert_old_or_new(reports)


@pytest.mark.long
@pytest.mark.parametrize("late", [False, True])
def test_a_night_killed_at_any_request_to_an_object_store(late: bool) -> None:
    reports = nights_on_an_object_store((partial(_is_number, number) for number in range(1000)), late=late)
    assert len(reports) > 25
    assert_old_or_new(reports)


def _writes(name: str, request: Request) -> bool:
    return request.method == "PUT" and request.key.endswith(name)


def _is_number(number: int, request: Request) -> bool:
    return request.number == number
