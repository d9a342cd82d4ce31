"""`make image`: build the Dockerfile with whichever builder this machine has, and say of which commit the image is."""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from deploy.release.version import ROOT, git, one_version

_BUILDERS: Final = {
    "docker": ["docker", "info"],
    "podman": ["podman", "info"],
    "buildah": ["buildah", "--version"],
}
"""By program, in the order of trying: a command that succeeds where it can build. A client of Docker alone cannot."""


def main() -> int:
    """Run the builder in this terminal. Returns its exit status, 2 if there is none."""
    parser = argparse.ArgumentParser(prog="make image", description="Build the image of the Dockerfile.")
    parser.add_argument("--image", default="forecast-scheduler", help="its name, without a tag, which is the version")
    parser.add_argument("--build", default="", metavar="OPTIONS", help="of the builder: --build=--push")
    chosen = parser.parse_args()
    try:
        command = build_command(first_builder(), chosen.image, shlex.split(chosen.build))
    except RuntimeError as error:
        print(f"make image: {error}", file=sys.stderr)
        return 2
    print(shlex.join(command), flush=True)
    return subprocess.run(command).returncode


def first_builder() -> str:
    """Return the first that works. Raises RuntimeError with what was tried."""
    why_not = []
    for name, works in _BUILDERS.items():
        if shutil.which(name) is None:
            why_not.append(f"{name} is not installed")
        elif subprocess.run(works, capture_output=True).returncode:
            why_not.append(f"{name} is there, but `{' '.join(works)}` fails: is its daemon running?")
        else:
            return name
    raise RuntimeError(f"no builder of images here: {'; '.join(why_not)}")


def build_command(builder: str, image: str, options: Sequence[str]) -> list[str]:
    """Return the command, whose labels name version, commit and its time."""
    version, revision = one_version(), git("rev-parse", "HEAD")
    if git("status", "--porcelain"):
        revision += "-changed"
    created = git("show", "--no-patch", "--format=%cI", "HEAD")
    labels = {"VERSION": version, "REVISION": revision, "CREATED": created}
    arguments = [part for name, value in labels.items() for part in ("--build-arg", f"{name}={value}")]
    return [builder, "build", *arguments, *options, "--tag", f"{image}:{version}", str(ROOT)]


if __name__ == "__main__":
    sys.exit(main())
