"""The image, built from the Dockerfile and run with the rights its manifests give it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from deploy.release.version import ROOT
from tests.image.image_build import ImageBuild, missing_tools

SAMPLE = ROOT / "data" / "sample"
pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(missing_tools()), reason=missing_tools())]

_MAY_WRITE = """
import os
for place in ("/", "/opt/forecast-scheduler", "/tmp"):
    print(place, os.access(place, os.W_OK))
print(os.getuid(), open("/proc/self/status").read().split("CapEff:")[1].split()[0])
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImageBuild]:
    built = ImageBuild(tmp_path_factory.mktemp("image"))
    yield built
    built.close()


def test_it_starts_the_command_as_nobody(image: ImageBuild) -> None:
    assert image.configuration("{{.OCIv1.Config.User}}") == "65532:65532"
    assert image.configuration("{{.OCIv1.Config.Entrypoint}}") == "[forecast-scheduler]"
    said = image.run("forecast-scheduler", "--version", data=SAMPLE)
    assert said.stdout == f"forecast-scheduler {version('forecast-scheduler')}\n", said.stderr


def test_nothing_but_tmp_can_be_written_and_no_capability_is_left(image: ImageBuild) -> None:
    said = image.run("/opt/forecast-scheduler/bin/python", "-c", _MAY_WRITE, data=SAMPLE)
    assert said.stdout.split() == [
        "/", "False", "/opt/forecast-scheduler", "False", "/tmp", "True", "65532", "0000000000000000",
    ], said.stderr  # fmt: skip


def test_it_trains_and_asks_the_model_it_published(image: ImageBuild) -> None:
    both = (
        "forecast-scheduler train --history /mnt --models /tmp/models"
        " && forecast-scheduler models list --models /tmp/models"
    )
    said = image.run("/bin/sh", "-c", both, data=SAMPLE)
    assert said.returncode == 0, said.stderr
    published = re.search(r"^published (\S+) at \S+: 48 services, 50 nodes", said.stdout, re.MULTILINE)
    assert published, said.stdout
    assert f" * {published[1]} " in said.stdout  # the one in use, in the table


def test_it_holds_the_drivers_of_object_stores_and_no_tools_to_build_with(image: ImageBuild) -> None:
    names = ("s3fs", "pip", "pytest", "hatchling")
    have = f"from importlib.util import find_spec; print([find_spec(name) is not None for name in {names}])"
    said = image.run("/opt/forecast-scheduler/bin/python", "-c", have, data=SAMPLE)
    assert said.stdout.strip() == "[True, False, False, False]", said.stderr
    assert not list(Path(image.root / "opt/forecast-scheduler").rglob("tests/schedule"))


def test_its_bill_of_materials_lists_the_packages_that_are_installed(image: ImageBuild) -> None:
    listing = "from importlib.metadata import distributions as all; print(*{f'{d.name}=={d.version}' for d in all()})"
    said = image.run("/opt/forecast-scheduler/bin/python", "-c", listing, data=SAMPLE)
    bill = json.loads((image.root / "opt/forecast-scheduler/sbom.cdx.json").read_text())
    components = [bill["metadata"]["component"], *bill["components"]]
    assert bill["bomFormat"] == "CycloneDX"
    assert {f"{one['name']}=={one['version']}" for one in components} == {*said.stdout.split()}, said.stderr


def test_it_says_which_version_and_commit_it_is_of(image: ImageBuild) -> None:
    labels = image.configuration("{{range $key, $value := .OCIv1.Config.Labels}}{{$key}}={{$value}}\n{{end}}")
    assert f"org.opencontainers.image.version={version('forecast-scheduler')}\n" in f"{labels}\n"
    assert re.search(r"org.opencontainers.image.revision=[0-9a-f]{40}", labels)
