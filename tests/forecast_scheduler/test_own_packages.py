"""Another distribution's package in the place of ours ends the start with one line."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from forecast_scheduler.own_packages import PACKAGES

ROOT = Path(__file__).parents[2]
INFO = "forecast_scheduler-0.1.0.dist-info"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A directory with what a wheel installs of the files that are checked, and its record."""
    place, lines = tmp_path / "site", []
    for package in PACKAGES:
        (place / package).mkdir(parents=True)
        for file in (ROOT / package).glob("*.py"):
            shutil.copy(file, place / package)
            lines.append(f"{package}/{file.name},sha256=,{file.stat().st_size}")
    (place / INFO).mkdir()
    (place / INFO / "RECORD").write_text("\n".join([*lines, f"{INFO}/RECORD,,"]))
    return place


def _start(*places: Path) -> subprocess.CompletedProcess[str]:
    """-S: this environment's own installation is not on the path; nor are the libraries, whose import comes later."""
    environment = {"PYTHONPATH": ":".join(map(str, places))}
    command = [sys.executable, "-S", "-m", "forecast_scheduler", "--version"]
    return subprocess.run(command, cwd=places[-1].parent, env=environment, capture_output=True, text=True)


def _is_started(said: subprocess.CompletedProcess[str]) -> bool:
    return "No module named" in said.stderr and said.stderr.startswith("Traceback")


def _foreign(place: Path, name: str) -> Path:
    file = place / name / "__init__.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("VALUE = 1\n")
    return file


def test_our_own_packages_start(site: Path) -> None:
    assert _is_started(_start(site))


@pytest.mark.parametrize("name", ["base", "kube"])
def test_a_package_before_ours_on_the_path_is_named(name: str, site: Path, tmp_path: Path) -> None:
    file = _foreign(tmp_path / "theirs", name)
    said = _start(tmp_path / "theirs", site)
    assert said.returncode == 2
    assert said.stderr.startswith(f"forecast-scheduler: {file} hides our package {name} in {site}: install ")
    assert said.stderr.count("\n") == 1 and "pipx install" in said.stderr


def test_a_file_that_another_installation_wrote_over_ours_is_named_with_its_owner(site: Path) -> None:
    file = _foreign(site, "cluster")
    info = site / "cluster-1.4.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cluster\nVersion: 1.4.1\n")
    (info / "RECORD").write_text("cluster/__init__.py,,\ncluster-1.4.1.dist-info/METADATA,,\n")
    said = _start(site)
    assert said.returncode == 2
    assert said.stderr.startswith(
        f"forecast-scheduler: {file} (of cluster) is not the file that we installed: install "
    )


def test_a_package_that_another_uninstallation_took_along_is_missed(site: Path) -> None:
    (site / "tenants" / "__init__.py").unlink()
    said = _start(site)
    assert said.returncode == 2
    assert f"{site / 'tenants' / '__init__.py'} is missing" in said.stderr


def test_a_namespace_of_the_same_name_in_the_working_directory_harms_nothing(site: Path) -> None:
    (site.parent / "cluster").mkdir()
    assert _is_started(_start(site))
