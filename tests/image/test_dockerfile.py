"""The Dockerfile says what the image must be; test_image.py builds it and looks."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def instructions() -> list[str]:
    text = (ROOT / "Dockerfile").read_text()
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#")).replace("\\\n", " ")
    return [line for line in lines.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def project() -> Any:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)


def test_the_last_stage_holds_what_was_built_and_no_sources(instructions: list[str]) -> None:
    last = len(instructions) - 1 - next(i for i, line in enumerate(reversed(instructions)) if line.startswith("FROM"))
    assert sum(line.startswith("FROM") for line in instructions) == 2
    copied = [line for line in instructions[last:] if line.startswith(("COPY", "ADD", "RUN"))]
    assert copied == ["COPY --from=build /opt/forecast-scheduler /opt/forecast-scheduler"]


def test_every_package_of_the_wheel_is_copied_and_let_through(instructions: list[str], project: Any) -> None:
    packages = set(project["tool"]["hatch"]["build"]["packages"])
    copied = {line.split()[1] for line in instructions if line.startswith("COPY") and "--from" not in line}
    through = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert packages <= copied
    assert packages <= through


def test_the_drivers_it_installs_by_default_are_an_extra_whose_versions_are_pinned(
    instructions: list[str], project: Any
) -> None:
    (extras,) = [line.partition("=")[2] for line in instructions if line.startswith("ARG EXTRAS=")]
    pinned = (ROOT / "constraints.txt").read_text()
    for extra in extras.split(","):
        for wanted in project["project"]["optional-dependencies"][extra]:
            assert f"\n{re.split('[<>=]', wanted)[0]}==" in pinned


def test_a_release_says_what_the_image_is(instructions: list[str]) -> None:
    (label,) = [line for line in instructions if line.startswith("LABEL")]
    for key in ("title", "description", "licenses", "version", "revision", "created"):
        assert f"org.opencontainers.image.{key}=" in label
    arguments = {line.split()[1].partition("=")[0] for line in instructions if line.startswith("ARG")}
    assert set(re.findall(r"\$\{(\w+)\}", label)) == {"VERSION", "REVISION", "CREATED"} <= arguments
    assert "--platform linux/amd64,linux/arm64" in (ROOT / "CONTRIBUTING.md").read_text()
