"""The plugin for Krew: an archive with a launcher, the wheel and its constraints, and the manifest that names it.

Krew installs binaries and this is a Python program, so the launcher runs the wheel with uv or pipx. The wheel is in the
archive: no index has to have our name, and the version is the one that the manifest's checksum covers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import yaml

from deploy.archive import EARLIEST, Entry, write_archive
from deploy.release.version import ROOT

_KREW: Final = ROOT / "deploy" / "krew"


def write_krew_plugin(directory: Path, wheel: Path, version: str, *, url: str, moment: int = EARLIEST) -> None:
    """Write kubectl-forecast-VERSION.tar.gz and forecast.yaml, the manifest.

    url    : of the directory that the archive will be fetched from
    moment : Unix time that the files in the archive get
    """
    archive = write_archive(directory / f"kubectl-forecast-{version}.tar.gz", _entries(wheel), moment=moment)
    manifest = yaml.safe_load((_KREW / "forecast.yaml").read_text())
    manifest["spec"]["version"] = f"v{version}"
    (platform,) = manifest["spec"]["platforms"]
    platform["uri"] = f"{url.rstrip('/')}/{archive.name}"
    platform["sha256"] = hashlib.sha256(archive.read_bytes()).hexdigest()
    (directory / "forecast.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False))


def _entries(wheel: Path) -> Iterator[Entry]:
    yield Entry("kubectl-forecast", (_KREW / "kubectl-forecast").read_bytes(), 0o755)
    yield Entry(wheel.name, wheel.read_bytes())
    for name in ("constraints.txt", "LICENSE"):
        yield Entry(name, (ROOT / name).read_bytes())
