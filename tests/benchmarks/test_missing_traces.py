"""A benchmark that is given a directory without the traces says so in one line, and where to read on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.backtest import main as backtest
from benchmarks.decisions import main as decisions
from benchmarks.replay import main as replay
from data.build_sample import main as build_sample


@pytest.mark.parametrize("main", [backtest, decisions, replay, build_sample])
def test_a_directory_without_the_traces_is_one_line(
    main: Callable[[list[str]], int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(["--traces", str(tmp_path)])
    except SystemExit as ended:  # what builds for it has said why
        status = int(str(ended.code))
    said = capsys.readouterr().err
    assert status == 2
    assert said.count("\n") == 1
    assert ".parquet is not there" in said
    assert "data/README.md" in said


@pytest.mark.parametrize("main", [backtest, decisions, replay])
def test_so_is_a_directory_that_is_no_history(
    main: Callable[[list[str]], int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--history", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
