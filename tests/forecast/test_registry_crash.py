"""Publishing on a real disk that is killed, limited or full: readers always see one complete model."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from forecast.errors import PublishError
from forecast.published_models import Registry
from tests.forecast.artefacts import artefact_of, value_of

ROOT = Path(__file__).parents[2]


def run_publisher(mode: str, directory: Path) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.forecast.publisher_process", mode, str(directory)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_publish_killed_at_any_call_leaves_the_old_or_the_new_model(tmp_path: Path) -> None:
    reports = run_publisher("kill-at-call", tmp_path)
    assert len(reports) > 30, "the calls into the disk were not intercepted"
    assert reports[-1]["finished"]
    new = [report["value"] == 2 * report["at"] + 1 for report in reports]
    assert [report["value"] for report in reports] == [2 * r["at"] + n for r, n in zip(reports, new, strict=True)]
    # Killed before a certain call it is the old model, afterwards the new one.
    assert new == sorted(new)
    assert not new[0]
    assert new[-1]
    # What all the killed ones have left is gone after one that is left alone.
    registry = Registry(str(tmp_path), keep=2, leftover_age=timedelta(0))
    registry.publish(artefact_of(1))
    assert {path.name for path in tmp_path.iterdir()} == {"latest.json", *registry.versions()}
    assert len(registry.versions()) == 2


def test_a_publisher_killed_at_random_leaves_a_complete_model(tmp_path: Path) -> None:
    reports = run_publisher("kill-at-random", tmp_path)
    values = [report["value"] for report in reports]
    assert len(values) >= 40
    assert values == sorted(values)
    assert len(set(values)) > 5, "the children were killed before they could publish anything"


def test_a_file_size_limit_keeps_the_old_model(tmp_path: Path) -> None:
    (report,) = run_publisher("small-files", tmp_path)
    assert report["value"] == 0
    assert report["versions"] == [0]
    assert "File too large" in report["error"]
    assert "stays in use" in report["error"]


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    mount_point = tmp_path / "disk"
    mount_point.mkdir()
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(mount_point)]
    if subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("mounting is not allowed here")
    yield mount_point
    subprocess.run(["umount", str(mount_point)], check=True)


def fill_up(path: Path) -> None:
    with path.open("wb", buffering=0) as ballast, contextlib.suppress(OSError):
        while True:
            ballast.write(bytes(4096))


def test_a_full_disk_keeps_the_old_model_and_is_left_as_it_was(tiny_disk: Path) -> None:
    registry = Registry(str(tiny_disk / "models"))
    old = registry.publish(artefact_of(1))
    with pytest.raises(PublishError, match=r"No space left on device.*stays in use.*free space"):
        registry.publish(artefact_of(2, n_services=2000))
    assert value_of(registry.load()) == 1
    assert registry.versions() == [old]
    assert sorted(path.name for path in (tiny_disk / "models").iterdir()) == [old, "latest.json"]
    registry.publish(artefact_of(3))
    assert value_of(registry.load()) == 3


def test_a_disk_that_is_full_to_the_last_byte_still_serves_the_old_model(tiny_disk: Path) -> None:
    registry = Registry(str(tiny_disk / "models"))
    registry.publish(artefact_of(1))
    fill_up(tiny_disk / "ballast")
    with pytest.raises(PublishError, match="No space left"):
        registry.publish(artefact_of(2))
    with pytest.raises(PublishError, match="No space left"):
        Registry(str(tiny_disk / "others")).publish(artefact_of(2))
    assert value_of(registry.load()) == 1
