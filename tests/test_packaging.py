"""What is installed, with which versions, and that the two commands of the README are what they say."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, files, packages_distributions, requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from forecast_scheduler.own_packages import PACKAGES

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)


@pytest.fixture(scope="module")
def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pairs}


def test_every_package_is_a_regular_package() -> None:
    """Without __init__.py a package is a namespace, which any other distribution could add modules to; a folder inside
    of one belongs to it."""
    assert [package for package in PACKAGES if not (ROOT / package / "__init__.py").exists()] == []


def test_every_version_is_pinned_directly_and_indirectly(project: dict[str, Any], pinned: dict[str, str]) -> None:
    extras = project["project"]["optional-dependencies"]
    wanted = [Requirement(text) for text in [*project["project"]["dependencies"], *extras["test"], *extras["bench"]]]
    wanted += [Requirement(text) for text in project["build-system"]["requires"]]
    missing, seen = set(), set()
    while wanted:
        requirement = wanted.pop()
        name = canonicalize_name(requirement.name)
        if name in seen or not (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            continue
        seen.add(name)
        if name not in pinned:
            missing.add(name)
        elif requirement.specifier:
            assert requirement.specifier.contains(pinned[name]), f"{requirement} contradicts constraints.txt"
        try:
            wanted += [Requirement(text) for text in requires(name) or ()]
        except PackageNotFoundError:
            continue  # an extra that is not installed here: its own pin is checked, what it needs is not
    assert not missing, f"add to constraints.txt: {', '.join(sorted(missing))}"


def _providers(module: str, candidates: Sequence[str]) -> Sequence[str]:
    """Of the distributions that share a top-level name such as `google`, those that have this module of it."""
    if len(set(candidates)) == 1:
        return candidates
    place = "/".join(module.split(".")[:2])
    has_it = [
        one for one in candidates if any(str(path).startswith((f"{place}/", f"{place}.")) for path in files(one) or ())
    ]
    return has_it or candidates


def test_what_is_imported_is_declared_and_what_is_declared_is_imported(project: dict[str, Any]) -> None:
    distributions = packages_distributions()
    imported = set()  # full names of modules
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    imported |= {alias.name for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module:
                    imported.add(node.module)
    used = {
        canonicalize_name(distribution)
        for module in imported
        if (top := module.partition(".")[0]) not in {*sys.stdlib_module_names, *PACKAGES}
        for distribution in _providers(module, distributions.get(top, [f"unknown-{top}"]))
    }
    declared = {canonicalize_name(Requirement(text).name) for text in project["project"]["dependencies"]}
    extras = project["project"]["optional-dependencies"]
    of_extras = [text for extra in ("dask", "aws", "google", "azure", "foundation") for text in extras[extra]]
    optional = {canonicalize_name(Requirement(text).name) for text in of_extras}
    assert used <= declared | optional, "declare it in pyproject.toml"
    of_others = {"tzdata", "httptools"}  # what zoneinfo reads, and what uvicorn's protocol of connections.py imports
    assert declared - used <= of_others, "not imported anywhere"


def test_constraints_name_versions_and_no_registry() -> None:
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert line.startswith("#") or re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line), line


def test_the_licence_is_apache(project: dict[str, Any]) -> None:
    assert project["project"]["license"] == "Apache-2.0"
    assert "Apache License" in (ROOT / "LICENSE").read_text()[:200]


@pytest.mark.parametrize("target", ["setup", "demo", "test", "test-long", "bench"])
def test_make_knows_the_target(target: str) -> None:
    plan = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True)
    assert plan.returncode == 0, plan.stderr


def test_make_refuses_an_interpreter_that_is_too_old(tmp_path: Path) -> None:
    old = tmp_path / "old-python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    command = ["make", f"PYTHON={old}", f"VENV={tmp_path / 'venv'}", "setup"]
    refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "needs Python 3.11 or newer" in refused.stderr
    assert not (tmp_path / "venv").exists()


def test_ci_runs_the_tests() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111, "not executable"
    assert "make --no-print-directory test" in script.read_text()
