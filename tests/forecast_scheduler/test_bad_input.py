"""Bad input, through the whole command: one sentence and status 2, or a documented fallback; never a traceback.

And never does it touch the last good model.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from forecast.published_models import Registry
from forecast_scheduler.cli import run
from tests.forecast_scheduler.small_history import Tables, small_tables


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def good_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one good model in it."""
    folder = tmp_path_factory.mktemp("good")
    models = folder / "models"
    assert run(["train", "--history", str(small_tables().write(folder / "history")), "--models", str(models)]) == 0
    return models


@pytest.fixture(scope="module")
def good_version(good_models: Path) -> str:
    version = Registry(str(good_models)).latest()
    assert version is not None
    return version


def two_days(tables: Tables) -> None:
    tables.usage = tables.usage[tables.usage.timestamp < "2026-10-07"]
    tables.nodes = tables.nodes[tables.nodes.timestamp < "2026-10-07"]


def nan_and_infinity(tables: Tables) -> None:
    tables.usage.loc[10:40, "cpu_cores"] = np.nan
    tables.usage.loc[50:60, "disk_bytes_per_second"] = np.inf


@pytest.mark.parametrize(
    ("spoil", "note"),
    [
        (two_days, "2 days are less than a week: this is a cold-start model"),
        (nan_and_infinity, "NaN or infinite"),
    ],
)
def test_what_can_be_mended_is_trained_on_and_told(
    spoil: Callable[[Tables], None], note: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tables = small_tables()
    spoil(tables)
    history = tables.write(tmp_path / "history")
    status = run(["train", "--history", str(history), "--models", str(tmp_path / "models")])
    said = capfd.readouterr()
    assert status == 0, said.err
    assert note in said.err
    assert "Traceback" not in said.err
    assert "published" in said.out
    assert len(Registry(str(tmp_path / "models")).versions()) == 1


def truncated_file(history: Path) -> None:
    file = history / "usage.parquet"
    file.write_bytes(file.read_bytes()[:-100])


def unknown_time_zone(history: Path) -> None:
    (history / "history.json").write_text('{"time_zone": "Europe/Atlantis"}')


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (truncated_file, "usage.parquet"),
        (unknown_time_zone, "Europe/Atlantis"),
    ],
)
def test_what_cannot_be_mended_is_one_sentence_and_the_last_good_model_stays(
    spoil: Callable[[Path], None],
    named: str,
    tmp_path: Path,
    good_models: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    history = small_tables().write(tmp_path / "history")
    spoil(history)
    before = contents(good_models)
    status = run(["train", "--history", str(history), "--models", str(good_models)])
    said = capfd.readouterr().err
    assert status == 2, said
    assert named in said
    assert said.count("\n") == 1, said
    assert contents(good_models) == before


def test_a_full_disk_while_publishing_leaves_the_last_good_model_in_use(
    tmp_path: Path,
    good_models: Path,
    good_version: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    history = small_tables().write(tmp_path / "history")
    before = contents(good_models)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    status = run(["train", "--history", str(history), "--models", str(good_models)])
    said = capfd.readouterr().err
    assert status == 2, said
    assert "No space left on device" in said
    assert said.count("\n") == 1, said
    assert contents(good_models) == before
    assert Registry(str(good_models)).latest() == good_version


def test_a_wrong_key_or_calendar_publishes_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(f"models:\n  public_key: {tmp_path / 'missing.pem'}\n")
    assert run(["train", "--history", str(tmp_path), "--config", str(config)]) == 2
    assert "missing.pem cannot be read: No such file or directory; correct models.public_key" in capfd.readouterr().err
    history = small_tables().write(tmp_path / "history")
    events = tmp_path / "events.yaml"
    events.write_text("- {name: sale, first_day: 2026-10-09, factor: many}\n")
    before = contents(tmp_path)
    train = ["train", "--history", str(history), "--models", str(tmp_path / "models"), "--events", str(events)]
    assert run(train) == 2
    assert f"{events}, event 1 (sale): " in " ".join(capfd.readouterr().err.split())
    assert contents(tmp_path) == before
    events.write_text("- {name: sale, first_day: 2026-10-09, factor: 2}\n")
    assert run(train) == 0
