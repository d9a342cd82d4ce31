"""Output files: refused early, replaced as a whole, and JSON that every parser reads."""

from __future__ import annotations

import errno
import json
import logging
import os
from pathlib import Path

import numpy as np
import pytest

from base.errors import InputError
from forecast_scheduler.commands.shell import STDOUT, check_writable, open_shell, write_figures, write_text


def test_a_full_disk_leaves_the_old_file_and_bad_output_is_refused_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "report.html"
    file.write_text("old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InputError, match=r"report\.html: No space left on device; make room"):
        write_text(file, "new")
    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(InputError, match="there is no directory"):
        check_writable(tmp_path / "missing" / "out.json")
    with pytest.raises(InputError, match="it is a directory"):
        check_writable(tmp_path)
    check_writable(tmp_path / "new.json")
    check_writable(None)
    check_writable(STDOUT)


def test_the_log_shows_warnings_with_their_fields_and_more_when_verbose(capfd: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("trainer.nightly")
    for verbose, shown in ((False, False), (True, True)):
        open_shell(None, verbose=verbose)
        logger.warning("not built upon", extra={"url": "models"})
        logger.info("published", extra={"version": "v1"})
        said = capfd.readouterr().err
        assert "WARNING trainer.nightly: not built upon url=models" in said
        assert ("INFO trainer.nightly: published version=v1" in said) == shown


def test_the_file_stays_json_without_secrets_or_what_json_cannot_say(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    write_figures(file, {"a": float("nan"), "b": [np.float64("inf"), np.float64(0.5)], "c": {"d": (1, None, "x")}})
    write_figures(None, {"a": 1})  # nobody asked for a file
    assert [path.name for path in tmp_path.iterdir()] == ["figures.json"]
    assert json.loads(file.read_text()) == {"a": None, "b": [None, 0.5], "c": {"d": [1, None, "x"]}}
    figures = {"notes": ['asked "http://host/x?token=secret"', "http://user:secret@host"], "n": float("nan")}
    write_figures(tmp_path / "figures.json", figures)
    text = (tmp_path / "figures.json").read_text()
    assert "secret" not in text
    assert json.loads(text) == {"notes": ['asked "http://host/x?token=***"', "http://***@host"], "n": None}
