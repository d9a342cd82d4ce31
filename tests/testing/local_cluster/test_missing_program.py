"""What is neither here nor can be built is named in one line, before anything is written."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from testing.local_cluster import __main__ as local_cluster


def test_no_kubectl_and_no_go(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))  # whose cache is empty
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))  # Go may lie beside it
    monkeypatch.setattr(sys, "argv", ["local_cluster", "--directory", str(tmp_path / "cluster")])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert local_cluster.main() == 2
    said = capsys.readouterr().err
    assert said.startswith("make cluster: no kubectl here and no Go to build it: install kubectl")
    assert said.count("\n") == 1
    assert not (tmp_path / "cluster").exists()
