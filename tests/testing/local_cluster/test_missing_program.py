"""What is neither here nor can be built is named in one line, before anything is written."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testing.local_cluster import __main__ as local_cluster


def _status(monkeypatch: pytest.MonkeyPatch, directory: Path) -> int:
    monkeypatch.setattr(sys, "argv", ["local_cluster", "--directory", str(directory)])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    return local_cluster.main()


def test_no_kubectl_and_no_go(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))  # whose cache is empty
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))  # Go may lie beside it
    assert _status(monkeypatch, tmp_path / "cluster") == 2
    said = capsys.readouterr().err
    assert said.startswith("make cluster: no kubectl here and no Go to build it: install kubectl")
    assert said.count("\n") == 1
    assert not (tmp_path / "cluster").exists()


def test_no_prometheus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def not_found(*arguments: str) -> None:
        raise subprocess.CalledProcessError(1, ["install_prometheus.sh"])

    monkeypatch.setattr(local_cluster, "kubectl", lambda: tmp_path / "kubectl")
    monkeypatch.setattr(local_cluster, "binary", lambda name: tmp_path / name)
    monkeypatch.setattr(local_cluster, "promtool", not_found)
    assert _status(monkeypatch, tmp_path / "cluster") == 2
    assert capsys.readouterr().err == (
        "make cluster: no Prometheus: put prometheus and promtool on PATH or into $PROMETHEUS_BIN\n"
    )
