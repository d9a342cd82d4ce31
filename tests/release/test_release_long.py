"""A release, made of a fresh clone and used as its users would: with uv, Krew and k9s.

Dependencies come from the index of this machine, krew and the schema of k9s from the module proxy.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from deploy.release.version import ROOT
from testing.servers.krew.binaries import krew, validate_krew_manifest

pytestmark = pytest.mark.long

UV = (sys.executable, "-m", "uv")
K9S = "github.com/derailed/k9s@v0.50.16"
NAMES = {
    "SHA256SUMS", "forecast-scheduler-0.1.0.cdx.json", "forecast-scheduler-0.1.0.tgz", "forecast.yaml", "install.yaml",
    "forecast_scheduler-0.1.0-py3-none-any.whl", "forecast_scheduler-0.1.0.tar.gz", "k9s-plugins.yaml",
    "kubectl-forecast-0.1.0.tar.gz",
}  # fmt: skip


def _run(
    *command: str | Path, cwd: Path = ROOT, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    given = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        command, cwd=cwd, env={**given, **(environment or {})}, capture_output=True, text=True, timeout=900
    )


def _install(environment: Path, *what: str | Path) -> None:
    done = _run(*UV, "pip", "install", "--quiet", "--python", environment, *what)
    assert done.returncode == 0, done.stderr


def _made(clone: Path, directory: Path) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "deploy.release",
        "--output",
        directory,
        "--image",
        "registry.example/ours",
    ]
    return _run(*command, cwd=clone, environment={"PYTHONPATH": str(clone)})


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("clone") / "forecast-scheduler"
    done = _run("git", "clone", "--quiet", "--shared", ROOT, place)
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture(scope="module")
def release(clone: Path) -> Path:
    done = _made(clone, clone / "dist")
    assert done.returncode == 0, done.stderr
    return clone / "dist"


@pytest.fixture(scope="module")
def installed(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of programs of a fresh environment, into which the wheel was installed."""
    place = tmp_path_factory.mktemp("installed")
    (wheel,) = release.glob("*.whl")
    made = _run(*UV, "venv", "--quiet", "--clear", "--python", sys.executable, place)
    assert made.returncode == 0, made.stderr
    _install(place, "--constraint", ROOT / "constraints.txt", wheel)
    return place / "bin"


def test_a_second_release_of_the_commit_has_the_same_bytes(release: Path, clone: Path, tmp_path: Path) -> None:
    assert {path.name for path in release.iterdir()} == NAMES
    assert _made(clone, tmp_path / "again").returncode == 0
    assert (tmp_path / "again" / "SHA256SUMS").read_text() == (release / "SHA256SUMS").read_text()
    checked = _run("sha256sum", "--check", "--quiet", "SHA256SUMS", cwd=tmp_path / "again")
    assert (checked.returncode, checked.stdout) == (0, "")


def test_a_tree_with_changes_makes_none_and_leaves_the_last_one(release: Path, clone: Path) -> None:
    (clone / "changed.txt").write_text("")
    refused = _made(clone, release)
    (clone / "changed.txt").unlink()
    assert refused.returncode == 2
    assert "made of a commit only, and changed.txt is not committed" in refused.stderr
    assert {path.name for path in release.iterdir()} == NAMES


def test_a_directory_with_other_files_is_not_emptied(clone: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("")
    refused = _made(clone, tmp_path)
    assert refused.returncode == 2 and "no earlier release" in refused.stderr
    assert (tmp_path / "mine.txt").exists()


def test_the_wheel_works_in_an_environment_of_its_own(installed: Path, tmp_path: Path) -> None:
    for program in ("forecast-scheduler", "kubectl-forecast"):
        assert _run(installed / program, "--version", cwd=tmp_path).stdout == "forecast-scheduler 0.1.0\n"
    looked = _run(installed / "forecast-scheduler", "look", "--help", cwd=tmp_path)
    assert (looked.returncode, looked.stderr) == (0, "") and "hottest nodes" in looked.stdout
    demo = _run(installed / "forecast-scheduler", "demo", cwd=tmp_path)
    assert demo.returncode == 2 and "run the demo in a clone of the repository" in demo.stderr


def test_it_shows_the_demo_with_a_sample_from_elsewhere(installed: Path, tmp_path: Path) -> None:
    """Templates, pages and tables of the packages are all there: a report is written without the clone."""
    command: list[str | Path] = [
        installed / "forecast-scheduler",
        "replay",
        "--history",
        ROOT / "data" / "sample",
        "--days",
        "1",
    ]
    played = _run(*command, "--report", tmp_path / "report.html", cwd=tmp_path)
    assert played.returncode == 0, played.stderr
    assert "<html" in (tmp_path / "report.html").read_text()


def test_a_real_package_of_one_of_our_names_is_found_by_the_next_start(installed: Path, tmp_path: Path) -> None:
    _install(installed.parent, "--no-deps", "scheduler==0.8.11")
    said = _run(installed / "forecast-scheduler", "--version", cwd=tmp_path)
    assert said.returncode == 2
    assert "/scheduler/__init__.py (of scheduler) is not the file that we installed" in said.stderr


def test_krew_takes_the_plugin_and_it_starts(release: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "kubectl-krew").symlink_to(krew())
    (programs / "uv").symlink_to(Path(sys.executable).with_name("uv"))
    path = {"KREW_ROOT": str(tmp_path / "krew"), "PATH": f"{programs}:{tmp_path / 'krew' / 'bin'}:{os.environ['PATH']}"}
    valid = _run(validate_krew_manifest(), "-manifest", release / "forecast.yaml", "-skip-install", environment=path)
    assert valid.returncode == 0, valid.stderr
    archive = release / "kubectl-forecast-0.1.0.tar.gz"
    command: list[str | Path] = [
        "kubectl",
        "krew",
        "install",
        "--manifest",
        release / "forecast.yaml",
        "--archive",
        archive,
    ]
    taken = _run(*command, environment=path)
    assert taken.returncode == 0, taken.stderr
    started = _run("kubectl", "forecast", "--version", cwd=tmp_path, environment=path)
    assert started.stdout == "forecast-scheduler 0.1.0\n", started.stderr


def test_k9s_takes_the_shortcuts(release: Path, tmp_path: Path) -> None:
    go = shutil.which("go")
    assert go is not None, "Go fetches the schema of k9s, as it builds the servers of the tests"
    fetched: Mapping[str, str] = json.loads(_run(go, "mod", "download", "-json", K9S, cwd=tmp_path).stdout)
    schema = json.loads((Path(fetched["Dir"]) / "internal/config/json/schemas/plugins.json").read_text())
    jsonschema_rs.validate(schema, yaml.safe_load((release / "k9s-plugins.yaml").read_text()))
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(schema, {"plugins": {"forecast": {"shortCut": "Shift-K"}}})
