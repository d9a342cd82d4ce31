"""What `make release` and `make image` refuse, and what the plugins say; test_release_long.py makes a release."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import typer
import yaml
from typer.core import TyperGroup

from deploy.release.bill_of_materials import image_extras
from deploy.release.image import build_command
from deploy.release.install_file import remark_on_image
from deploy.release.version import ROOT, one_version
from forecast_scheduler.cli import app

LAUNCHER = ROOT / "deploy" / "krew" / "kubectl-forecast"


def _only(place: Path, *programs: str) -> dict[str, str]:
    """An environment whose PATH has these programs alone."""
    place.mkdir()
    for program in programs:
        (place / program).symlink_to(str(shutil.which(program)))
    return {**os.environ, "PATH": str(place)}


def test_one_version_is_named_everywhere() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", one_version())


def test_a_machine_without_a_builder_of_images_hears_what_was_tried(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "deploy.release.image"]
    environment = {**_only(tmp_path / "bin"), "PYTHONPATH": str(ROOT)}
    (tmp_path / "bin" / "docker").write_text("#!/bin/sh\nexit 1\n")  # a client without a daemon
    (tmp_path / "bin" / "docker").chmod(0o755)
    said = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert said.returncode == 2
    assert said.stderr == (
        "make image: no builder of images here: docker is there, but `docker info` fails: is its daemon running?; "
        "podman is not installed; buildah is not installed\n"
    )


def test_the_image_is_labelled_with_version_commit_and_its_time() -> None:
    command = build_command("podman", "registry.example/forecast-scheduler", ["--push"])
    assert command[:2] == ["podman", "build"] and "--push" in command
    assert command[-3:] == ["--tag", f"registry.example/forecast-scheduler:{one_version()}", str(ROOT)]
    assert [one.partition("=")[0] for one in command[3:8:2]] == ["VERSION", "REVISION", "CREATED"]


def test_a_release_without_a_registry_says_that_no_node_can_pull_its_image() -> None:
    assert "IMAGE=registry.example/forecast-scheduler" in remark_on_image("forecast-scheduler")
    assert remark_on_image("registry.example/forecast-scheduler") == ""


def test_the_bill_of_materials_is_of_what_the_image_installs() -> None:
    assert image_extras() == ["s3"]
    tool = "pip install --constraint constraints.txt cyclonedx-bom"
    assert tool in (ROOT / "Dockerfile").read_text()
    assert "\ncyclonedx-bom==" in (ROOT / "constraints.txt").read_text()


def test_the_launcher_of_krew_says_what_it_needs(tmp_path: Path) -> None:
    environment = _only(tmp_path / "bin", "sh", "dirname", "readlink")
    (tmp_path / "link").symlink_to(LAUNCHER)
    said = subprocess.run([tmp_path / "link", "look"], env=environment, capture_output=True, text=True)
    assert said.returncode == 2
    assert "needs uv or pipx, neither of which is in PATH" in said.stderr


def test_the_shortcuts_of_k9s_are_commands_of_ours() -> None:
    plugins = yaml.safe_load((ROOT / "deploy" / "k9s" / "plugins.yaml").read_text())["plugins"]
    assert len({one["shortCut"] for one in plugins.values()}) == len(plugins) == 4
    command = typer.main.get_command(app)
    assert isinstance(command, TyperGroup)
    for plugin in plugins.values():
        program, name, *rest = plugin["args"][1].partition(" 2>&1")[0].split()
        options = {option for one in command.commands[name].params for option in one.opts}
        assert program == "forecast-scheduler"
        assert {one for one in rest if one.startswith("--")} <= options
