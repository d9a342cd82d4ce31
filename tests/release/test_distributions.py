"""What sdist and wheel hold: every file of the packages that git knows, the licence, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

from deploy.release.distributions import Distributions, build_distributions
from deploy.release.version import ROOT
from forecast_scheduler.own_packages import PACKAGES

DIST_INFO = "forecast_scheduler-0.1.0.dist-info"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    return build_distributions(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def wheel(built: Distributions) -> set[str]:
    with zipfile.ZipFile(built.wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def tracked() -> set[str]:
    """Files of our packages that git knows: templates, pages and tables, too."""
    listed = subprocess.run(["git", "ls-files", "--", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}


def _metadata(built: Distributions) -> Message:
    with zipfile.ZipFile(built.wheel) as archive:
        return Parser().parsestr(archive.read(f"{DIST_INFO}/METADATA").decode())


def test_the_packages_that_a_start_checks_are_those_that_are_built() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(project["tool"]["hatch"]["build"]["packages"]) == set(PACKAGES)


def test_the_wheel_holds_the_packages_as_git_has_them(wheel: set[str], tracked: set[str]) -> None:
    assert len([name for name in tracked if not name.endswith(".py")]) > 20  # templates, scripts, tables
    untracked = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard", "--", *PACKAGES], cwd=ROOT, capture_output=True, text=True
    )
    assert {name for name in wheel if not name.startswith(DIST_INFO)} == tracked | {*untracked.stdout.splitlines()}


def test_the_sdist_holds_what_the_wheel_is_built_from(built: Distributions, tracked: set[str]) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    beside = {"pyproject.toml", "constraints.txt", "README.md", "LICENSE", "PKG-INFO", ".gitignore"}
    assert names >= tracked | beside
    assert {name.partition("/")[0] for name in names} == set(PACKAGES) | beside


def test_the_wheel_says_what_it_is(built: Distributions, wheel: set[str]) -> None:
    metadata = _metadata(built)
    assert (metadata["Name"], metadata["License-Expression"]) == ("forecast-scheduler", "Apache-2.0")
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert f"{DIST_INFO}/licenses/LICENSE" in wheel
    wanted = {
        line.partition(";")[0].strip() for line in metadata.get_all("Requires-Dist", ()) if "extra ==" not in line
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert len(wanted) == len(project["dependencies"])
    assert metadata.get_all("Provides-Extra") == sorted(project["optional-dependencies"])


def test_both_commands_start_where_the_check_of_the_packages_is(built: Distributions) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        scripts = archive.read(f"{DIST_INFO}/entry_points.txt").decode().split()
    assert scripts[0] == "[console_scripts]"
    assert set(scripts[1:]) == {"forecast-scheduler", "kubectl-forecast", "=", "forecast_scheduler.__main__:main"}


def test_a_wheel_runs_without_its_clone(built: Distributions, tmp_path: Path) -> None:
    """The sample stays in the repository: `demo` says where to find it."""
    with zipfile.ZipFile(built.wheel) as archive:
        archive.extractall(tmp_path / "site")
    said = subprocess.run(
        [sys.executable, "-m", "forecast_scheduler", "demo"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
    )
    assert said.returncode == 2
    assert "run the demo in a clone of the repository" in said.stderr, said.stderr
