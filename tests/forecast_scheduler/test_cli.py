"""The command line: what it offers, what it says about mistakes, and its exit status.

Most tests call `run`, which is all that the console command does; a few start the real command as a process.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import typer
from typer.core import TyperCommand
from typer.testing import CliRunner

from base.errors import ForecastError, InputError, PublishError
from forecast_scheduler import cli
from forecast_scheduler.cli import app, run
from tests.forecast_scheduler.command_tree import commands

COMMAND = Path(sys.executable).with_name("forecast-scheduler")


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings from outside, and a working directory in which nothing lies."""
    for variable in list(os.environ):
        if variable.startswith("FORECAST_SCHEDULER_"):
            monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)


def start(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The installed command as a process of its own."""
    return subprocess.run(
        [str(COMMAND), *arguments], capture_output=True, text=True, env={**os.environ, **environment}, timeout=120
    )


@pytest.mark.parametrize(("name", "command"), list(commands()), ids=lambda one: one if isinstance(one, str) else "")
def test_every_explanation_has_forty_of_eighty_columns(name: str, command: TyperCommand) -> None:
    shown = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "80"}).output
    lines = shown.partition("Options:\n")[2].splitlines()
    begins = {len(line) - len(line.lstrip()) for line in lines if line.startswith(" " * 10)}
    assert len(begins) == 1 and max(begins) <= 40, shown
    assert max(map(len, shown.splitlines())) <= 80
    words = " ".join(shown.split())
    assert "Show this message and exit." in words
    # Brackets are no styles.
    for text in [getattr(one, "help", None) or "" for one in command.params]:
        assert text.replace("-", "").replace(" ", "") in words.replace("-", "").replace(" ", "")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("trian", "No such command 'trian'. Did you mean 'train'?"),
        ("train --histroy x", "--histroy"),
        ("train", "no history named: pass --history DIR"),
        ("train --history nowhere", "or name the store to begin it from by --prometheus URL"),
        ("backtest --history . --json nowhere/out.json", "there is no directory nowhere"),
        ("replay --history . --report .", "it is a directory"),
        ("replay --history . --days 99", "less than or equal to 14"),
        ("replay --history . --at yesterday", "--at 'yesterday' is not a time: write for instance 2026-11-14T04:00"),
        ("train --history . --config nowhere.yaml", "config file nowhere.yaml cannot be read"),
        ("train surplus --history .", "surplus"),
        ("explain --top 2", "Missing argument 'POD'"),
        (
            "explain shop/a --at 2026-02-12T17:00",
            "--at and --history are for a cluster from a file: pass --cluster",
        ),
        ("explain shop/a --cluster a --kubeconfig b", "--cluster and --kubeconfig name two clusters: pass one of them"),
        ("node n --cluster a --context b", "--cluster and --context name two clusters: pass one of them"),
        ("explain shop/a --cluster a --history b --prometheus http://c", "both say what is used now: pass one of them"),
        ("scorer --port 70000", "--port"),
    ],
)
def test_bad_usage_is_one_line_and_status_2(line: str, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(line.split()) == 2
    said = capfd.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1, said.err
    assert said.out == ""


@pytest.mark.parametrize(
    "line",
    [
        "",
        "models",
        "policy",
        *(name for name, command in commands() if any(parameter.required for parameter in command.params)),
    ],
)
def test_what_needs_arguments_prints_its_help_without_any(line: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(line.split()) == 2
    said = capfd.readouterr()
    first, *others = said.err.splitlines()
    assert first.startswith(f"Usage: forecast-scheduler{' ' if line else ''}{line}")
    assert any("--help" in other for other in others) and "Traceback" not in said.err
    assert said.out == ""


def test_the_history_may_come_from_the_settings(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORECAST_SCHEDULER_HISTORY", "elsewhere")
    assert run(["train"]) == 2
    assert "history directory elsewhere does not exist" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (InputError("two days are\nnot enough: wait"), 2, "two days are not enough: wait"),
        (PublishError("disk full, the last model is still the latest"), 2, "disk full, the last model is still"),
        (ForecastError("the fit did not converge"), 1, "the fit did not converge"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/m/x"), 2, "cannot use /m/x: No space left on device: make"),
        (OSError(errno.EACCES, os.strerror(errno.EACCES)), 2, "cannot use: Permission denied"),
        (OSError(errno.EIO, os.strerror(errno.EIO)), 1, "unexpected OSError"),
        (MemoryError(), 1, "out of memory"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ZeroDivisionError("division by zero"), 1, "unexpected ZeroDivisionError: division by zero"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_every_error_becomes_one_line_and_a_status(
    error: BaseException,
    status: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    failing = typer.Typer()

    @failing.command()
    def fail() -> None:
        raise error

    monkeypatch.setattr(cli, "app", failing)
    assert run([]) == status
    said = capfd.readouterr().err
    assert message in said
    assert said.count("\n") == 1, said


def test_the_version_is_shown_and_verbose_errors_with_their_place(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capfd.readouterr().out == f"forecast-scheduler {version('forecast-scheduler')}\n"
    assert run(["train", "--history", "nowhere", "--verbose"]) == 2
    said = capfd.readouterr().err
    assert "Traceback" in said
    assert said.rstrip().endswith("no history is named")


def test_the_installed_command_is_that_of_the_module_with_its_status() -> None:
    module = [sys.executable, "-m", "forecast_scheduler", "--help"]
    assert start("--help").stdout == subprocess.run(module, capture_output=True, text=True, check=True).stdout
    refused = start("train", "--history", "nowhere")
    assert refused.returncode == 2
    assert refused.stderr.startswith("forecast-scheduler: history directory nowhere does not exist")
    assert refused.stderr.count("\n") == 1
