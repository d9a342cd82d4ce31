"""A recorded evening as the commands take it: cluster file, models, history and moment."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from base.progress import silent
from forecast_scheduler.cli import run
from forecast_scheduler.commands.demo.evening_scorer import cluster_at
from forecast_scheduler.commands.history_directory import open_history
from forecast_scheduler.settings.document import Settings
from tests.forecast_scheduler.small_history import small_tables

MOMENT = "2026-10-13T17:00"


@dataclass(frozen=True)
class Evening:
    cluster: Path
    models: Path
    history: Path

    def options(self, *, models: bool = True, history: bool = True) -> list[str]:
        given = ["--cluster", str(self.cluster), "--at", MOMENT]
        given += ["--models", str(self.models if models else self.models.with_name("none"))]
        return given + (["--history", str(self.history)] if history else [])


def recorded_evening(folder: Path) -> Evening:
    """Write nine days, of which the last is the one that is played, and the model of them."""
    for path, content in _files().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return Evening(folder / "cluster.json", folder / "models", folder / "history")


@cache
def _files() -> dict[str, bytes]:
    """Return contents by path: made once in a process, since many tests begin with the same evening."""
    with TemporaryDirectory() as made:
        folder = Path(made)
        _make(folder)
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _make(folder: Path) -> None:
    history = small_tables().write(folder / "history")
    files = open_history(Settings(), history, silent)
    moment = datetime.fromisoformat(MOMENT).replace(tzinfo=UTC)
    pods = files.pod_usage(moment.date(), moment.date(), progress=silent)
    (folder / "cluster.json").write_text(json.dumps(cluster_at(files.history(), pods, moment)))
    assert run(["train", "--history", str(history), "--models", str(folder / "models")]) == 0
