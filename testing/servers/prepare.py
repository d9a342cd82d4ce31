"""Builds or unpacks the servers of `make test`, once per machine, and says so: python -m testing.servers.prepare."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from testing.servers.control_plane.binaries import binary
from testing.servers.controller_manager.binary import kube_controller_manager
from testing.servers.kubectl.binary import kubectl
from testing.servers.prometheus import promtool_path

_PROGRAMS: Final[Mapping[str, Callable[[], Path]]] = {
    "Prometheus": promtool_path,
    "etcd": lambda: binary("etcd"),
    "kube-apiserver": lambda: binary("kube-apiserver"),
    "kube-scheduler": lambda: binary("kube-scheduler"),
    "kube-controller-manager": kube_controller_manager,
    "kubectl": kubectl,
}
_WORTH_SAYING: Final = 1.0


def main() -> None:
    """Get each, one after the other: a build takes all processors."""
    for name, get in _PROGRAMS.items():
        began = time.monotonic()
        try:
            path = get()
        except (RuntimeError, subprocess.CalledProcessError) as error:
            print(error, file=sys.stderr)
            sys.exit(2)
        if (seconds := time.monotonic() - began) > _WORTH_SAYING:
            print(f"{name}: {seconds:.0f} s, {path.stat().st_size / 2**20:.0f} MiB, kept for later runs", flush=True)


if __name__ == "__main__":
    main()
