"""install.yaml: one `kubectl apply` on an empty cluster, with rights to find the metrics store and none to write."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from deploy.release.install_file import write_install_file
from deploy.release.version import ROOT
from forecast_scheduler.discovery.ranking import PORTS_OF_STORES
from forecast_scheduler.settings.document import load_settings
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane
from testing.servers.kubectl.binary import kubectl

IMAGE = "registry.example/forecast-scheduler"
ACCOUNTS = "system:serviceaccount:forecast-scheduler:forecast-scheduler"


@pytest.fixture(scope="module")
def install(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("install")
    write_install_file(place, "0.1.0", image=IMAGE)
    return place / "install.yaml"


def _kubectl(plane: ControlPlane, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [kubectl(), "--kubeconfig", plane.kubeconfig, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def plane(install: Path) -> Iterator[ControlPlane]:
    """After one command; it says neither an error nor a warning."""
    with control_plane() as plane:
        done = _kubectl(plane, "apply", "--server-side", "-f", install)
        assert (done.returncode, done.stderr) == (0, "")
        assert "cronjob.batch/forecast-scheduler-trainer serverside-applied" in done.stdout
        yield plane


def test_applying_it_again_changes_nothing(install: Path, plane: ControlPlane) -> None:
    difference = _kubectl(plane, "diff", "--server-side", "-f", install)
    assert (difference.returncode, difference.stdout, difference.stderr) == (0, "", "")


@pytest.mark.parametrize("part", ["trainer", "scorer"])
def test_a_part_may_look_for_the_store_and_write_nothing(part: str, plane: ControlPlane) -> None:
    listed = _kubectl(plane, "auth", "can-i", "--list", "--no-headers", "--as", f"{ACCOUNTS}-{part}").stdout
    rights = dict(re.findall(r"^(\S+) +\[\] +\[\] +\[(.*)\]$", listed, re.MULTILINE))  # verbs by resource
    assert {"list"} <= {*rights["services"].split()} & {*rights["nodes"].split()}
    writing = {one for one, verbs in rights.items() if not {*verbs.split()} <= {"get", "list", "watch"}}
    assert all(one.partition(".")[0].endswith(("reviews", "selfsubjectaccessreviews")) for one in writing), writing


def test_a_first_run_needs_one_more_command(plane: ControlPlane) -> None:
    of_trainer = "cronjob/forecast-scheduler-trainer"
    made = _kubectl(plane, "-n", "forecast-scheduler", "create", "job", "--from", of_trainer, "first-run")
    assert (made.returncode, made.stderr) == (0, "")


def test_settings_of_ones_own_go_on_top_of_it(plane: ControlPlane, tmp_path: Path) -> None:
    """The directory of the page, on deploy/install: a claim's access mode cannot change."""
    page = (ROOT / "docs" / "operate" / "deployment.md").read_text()
    assert "name `../deploy/install` in place of `../deploy/overlays/observe`" in page.replace("\n", " ")
    shown = page.partition("$ cat our-cluster/kustomization.yaml\n")[2].partition("$ kubectl")[0]
    relative = os.path.relpath(ROOT / "deploy" / "install", tmp_path.resolve())
    (tmp_path / "kustomization.yaml").write_text(shown.replace("../deploy/overlays/observe", relative))
    (tmp_path / "settings.yaml").write_text("time_zone: Europe/Berlin\n")
    done = _kubectl(plane, "apply", "--server-side", "--dry-run=server", "-k", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_it_names_the_image_and_no_store(install: Path, tmp_path: Path) -> None:
    text = install.read_text()
    assert set(re.findall(r"image: (\S+)", text)) == {f"{IMAGE}:0.1.0"}
    (settings,) = [one for one in yaml.safe_load_all(text) if one["kind"] == "ConfigMap"]
    (tmp_path / "settings.yaml").write_text(settings["data"]["settings.yaml"])
    assert load_settings(tmp_path / "settings.yaml", {}).prometheus.url is None


def test_the_ports_of_all_known_stores_are_let_out(install: Path) -> None:
    (policy,) = [
        one
        for one in yaml.safe_load_all(install.read_text())
        if (one["kind"], one["metadata"]["name"]) == ("NetworkPolicy", "forecast-scheduler-store-finder")
    ]
    assert {port["port"] for port in policy["spec"]["egress"][0]["ports"]} == {*PORTS_OF_STORES, 6443}
