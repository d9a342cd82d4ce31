"""Where etcd, kube-apiserver and kube-scheduler come from: $KUBEBUILDER_ASSETS, our cache, or a build of go/MINOR/.

$KUBERNETES_VERSION chooses the minor version, 1.35 to 1.38, of all programs of one run. The cache is named after the
versions, so that a build of some minutes happens once per machine. Building needs Go and its module downloads.
"""

from __future__ import annotations

import hashlib
import os
import re
from functools import cache
from pathlib import Path
from typing import Final

from testing.servers.program_cache import built_once, cache_directory, run_go

DEFAULT_VERSION: Final = "1.37"
_MODULES: Final = Path(__file__).with_name("go")
VERSIONS: Final = tuple(sorted(one.name for one in _MODULES.iterdir()))
"""Minor versions of Kubernetes that a control plane can be built of."""
_PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
}


@cache
def binary(name: str) -> Path:
    """The program etcd, kube-apiserver or kube-scheduler; the first call on a machine builds it."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and (Path(assets) / name).exists():
        return Path(assets) / name
    module = _MODULES / kubernetes_version()
    kubernetes, etcd, digest = _versions(module)
    directory = cache_directory() / f"control-plane-{kubernetes}-etcd-{etcd}-{digest}"
    return built_once(directory / name, lambda path: _build(name, path, module, kubernetes))


def kubernetes_version() -> str:
    """The minor version of this run, such as "1.36". Raises RuntimeError for one that cannot be built here."""
    version = os.environ.get("KUBERNETES_VERSION", DEFAULT_VERSION)
    if version not in VERSIONS:
        raise RuntimeError(f"KUBERNETES_VERSION is {version!r}, must be one of {', '.join(VERSIONS)}")
    return version


def _versions(directory: Path) -> tuple[str, str, str]:
    """Of Kubernetes and etcd as go.mod pins them, and a digest of everything a build depends on."""
    module = (directory / "go.mod").read_text()
    found = [re.search(rf"^\s*{re.escape(path)} (v\S+)", module, re.MULTILINE) for path in _PINNED]
    if not all(found):
        raise RuntimeError(f"{directory / 'go.mod'} pins no version of one of {', '.join(_PINNED)}")
    files = (directory / "go.mod", directory / "go.sum", *directory.glob("*.sh"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]
    kubernetes, etcd = (match.group(1) for match in found if match)
    return kubernetes, etcd, digest


_PINNED = ("k8s.io/kubernetes", "go.etcd.io/etcd/server/v3")


def _build(name: str, path: Path, module: Path, version: str) -> None:
    """Without the stamps a build from a module says v0.0.0, which clients refuse as too old."""
    major, minor = version.removeprefix("v").split(".")[:2]
    stamp = "k8s.io/component-base/version"
    flags = f"-s -w -X {stamp}.gitVersion={version} -X {stamp}.gitMajor={major} -X {stamp}.gitMinor={minor}"
    arguments = ["build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", str(path), _PACKAGES[name]]
    otherwise = "point KUBEBUILDER_ASSETS at a directory that has it (setup-envtest fetches one)"
    run_go(name, arguments, directory=module, otherwise=otherwise)
