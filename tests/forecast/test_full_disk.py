"""Publishing on a real disk that is full; tests/trainer/test_night_crash.py kills publishers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from forecast.errors import PublishError
from forecast.published_models import Registry
from tests.forecast.artefacts import artefact_of, value_of


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
