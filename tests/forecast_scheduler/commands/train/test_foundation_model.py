"""`train` with a foundation model: it is published with it, and refused before anything is written without its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from forecast.published_models import Registry
from forecast_scheduler.cli import run
from tests.forecast.foundation.tiny_models import tiny_model
from tests.forecast_scheduler.small_history import small_tables


def trained(tmp_path: Path, *options: str) -> int:
    history = small_tables().write(tmp_path / "history")
    return run(["train", "--history", str(history), "--models", str(tmp_path / "models"), *options])


def test_the_published_model_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny_model().parent)
    assert trained(tmp_path, "--foundation-model", tiny_model().name) == 0
    info = Registry(str(tmp_path / "models")).load().manifest.extra["info"]
    assert "foundation_model" in info["predictors"]
    assert str(tiny_model()) in info["recipe"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("gone.onnx", "there is no such file or directory on this machine"),
        ("https://models.example/chronos.onnx", "it must be a local path, nothing is downloaded"),
    ],
)
def test_nothing_is_written_without_its_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], path: str, message: str
) -> None:
    assert trained(tmp_path, "--foundation-model", path) == 2
    assert message in capfd.readouterr().err.replace("\n", " ")
    assert not (tmp_path / "models").exists()
