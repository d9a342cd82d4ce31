"""Builds the Dockerfile as `make image` does, and runs the image as a cluster would: as nobody, with a root file system
that cannot be written and no capability.

buildah builds in a chroot. The base comes from Debian's packages by debootstrap, since a registry of images may be out
of reach where tests run; it is kept in the cache of the test servers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from deploy.release.image import build_command
from deploy.release.version import one_version

_BASE = Path.home() / ".cache" / "forecast-scheduler" / "python-base-bookworm.tar"
_TOOLS = ("buildah", "debootstrap", "apt-get", "unshare", "setpriv")
_PIP_SETTINGS = ("CERT", "FIND_LINKS", "INDEX_URL", "EXTRA_INDEX_URL", "TRUSTED_HOST", "NO_INDEX")

# Mounts happen in a mount namespace of their own, which ends with the process.
_CONFINED = """
set -eu
image=$1; data=$2; shift 2
mount --bind "$image" "$image"
mount -o remount,bind,ro "$image"
mount -t tmpfs -o size=64m,mode=1777 tmpfs "$image/tmp"
mount --bind /dev "$image/dev"
mount -t proc proc "$image/proc"
mount --bind "$data" "$image/mnt"
exec chroot "$image" /usr/bin/setpriv --reuid 65532 --regid 65532 --clear-groups --no-new-privs \
    --bounding-set=-all --inh-caps=-all /usr/bin/env -i "$@"
"""


def missing_tools() -> str:
    """What this machine lacks to build an image; empty if nothing."""
    if os.geteuid() != 0:
        return "only root may build in a chroot: run these tests as root"
    lacking = [tool for tool in _TOOLS if shutil.which(tool) is None]
    return f"not installed: {', '.join(lacking)} (apt-get install {' '.join(lacking)})" if lacking else ""


class ImageBuild:
    """The image of the Dockerfile, built into `directory`. Raises CalledProcessError with what buildah said."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._image = directory, f"localhost/forecast-scheduler:{one_version()}"
        self._buildah("from", "--name", "base", "scratch")
        self._buildah("add", "--quiet", "base", str(_base()), "/")
        self._buildah("commit", "--quiet", "--rm", "base", "python-base")
        pip_configuration = directory / "pip.conf"
        pip_configuration.write_text(_pip_configuration())
        mounts = [f"{pip_configuration}:/etc/pip.conf:ro"]
        mounts += [f"{path}:{path}:ro" for path in _pip_paths()]
        volumes = [argument for mount in mounts for argument in ("--volume", mount)]
        options = ["--layers=false", "--network", "host", *volumes, "--build-arg", "PYTHON=localhost/python-base"]
        self._buildah(*build_command("buildah", "forecast-scheduler", options)[1:])
        self._buildah("from", "--name", "built", self._image)
        self.root = Path(self._buildah("mount", "built").strip())

    def configuration(self, template: str) -> str:
        """A part of the image's configuration, by a Go template such as {{.OCIv1.Config.User}}."""
        return self._buildah("inspect", "--type", "image", "--format", template, self._image).strip()

    def run(self, *command: str, data: Path) -> subprocess.CompletedProcess[str]:
        """Run a command in the image; `data` is seen at /mnt. It has at most five minutes."""
        environment = self.configuration("{{range .OCIv1.Config.Env}}{{.}}\n{{end}}").splitlines()
        script = ["unshare", "--mount", "bash", "-c", _CONFINED, "confined", str(self.root), str(data)]
        return subprocess.run([*script, *environment, *command], capture_output=True, text=True, timeout=300)

    def close(self) -> None:
        """Forget the image."""
        self._buildah("rm", "--all")
        self._buildah("rmi", "--all", "--force")

    def _buildah(self, *arguments: str) -> str:
        storage = ["--root", str(self._directory / "storage"), "--runroot", str(self._directory / "run")]
        environment = {**os.environ, "BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "vfs"}
        return _run(["buildah", *storage, *arguments], environment)


def _base() -> Path:
    """A tar of Debian with Python, made once."""
    if not _BASE.exists():
        folder = _BASE.with_suffix(".building")
        shutil.rmtree(folder, ignore_errors=True)
        packages = "--include=python3,python3-venv,ca-certificates"
        # The mirror that this machine's apt uses.
        targets = _run(["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)"]).splitlines()
        mirror = next((target.split()[1] for target in targets if target.startswith("bookworm ")), None)
        _run(["debootstrap", "--variant=minbase", packages, "bookworm", str(folder), *([mirror] if mirror else [])])
        half = _BASE.with_suffix(".half")
        _run(["tar", "--create", "--file", str(half), "--directory", str(folder), "."])
        half.replace(_BASE)
        shutil.rmtree(folder)
    return _BASE


def _pip_configuration() -> str:
    """Where this machine gets its packages from, for pip in the build."""
    given = {name: os.environ.get(f"PIP_{name}") for name in _PIP_SETTINGS}
    return "[global]\n" + "".join(
        f"{name.lower().replace('_', '-')} = {value}\n" for name, value in given.items() if value
    )


def _pip_paths() -> Sequence[str]:
    return [path for name in ("CERT", "FIND_LINKS") if os.path.exists(path := os.environ.get(f"PIP_{name}", ""))]


def _run(command: Sequence[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout
