"""Whether another distribution stands in the place of one of our top-level packages. Imports none of them.

Their names are plain ones (base, kube, cluster), and others have used them: a directory before ours on sys.path hides
ours, and in a shared site-packages the later installation overwrites the files of the earlier one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from typing import Final

PACKAGES: Final = (
    "base", "forecast", "trainer", "kube", "cluster", "serving", "scorer", "placement", "tenants", "extender",
    "scheduler", "profiles", "advisor", "rebalancer", "autoscaling", "admission", "forecast_scheduler",
)  # fmt: skip

_WAY_OUT: Final = (
    "install forecast-scheduler into an environment of its own (pipx install, or uv tool install), and take that "
    "directory out of PYTHONPATH if it is there"
)


def foreign_package() -> str | None:
    """Return what stands in our place and the way out, in one line; None = all packages are ours.

    Takes a millisecond: it looks for 17 packages, and compares the sizes of 200 files with those of the wheel.
    """
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for name in PACKAGES:
        spec = PathFinder.find_spec(name)
        origin = spec.origin if spec is not None else None
        if origin is None:
            return f"{os.path.join(root, name, '__init__.py')} is missing: {_WAY_OUT}"
        if not _same(os.path.dirname(os.path.dirname(origin)), root):
            return f"{origin} {_owner(name)}hides our package {name} in {root}: {_WAY_OUT}"
    for path in _changed(root):
        name = path.partition("/")[0]
        return f"{os.path.join(root, path)} {_owner(name)}is not the file that we installed: {_WAY_OUT}"
    return None


def _same(one: str, other: str) -> bool:
    return one == other or os.path.realpath(one) == os.path.realpath(other)


def _changed(root: str) -> Iterator[str]:
    """Files of another size than in the RECORD of our wheel: those directly in a package, where names can meet.

    A clone and an editable installation have no such record.
    """
    places = (one for one in os.listdir(root) if one.startswith("forecast_scheduler-") and one.endswith(".dist-info"))
    for place in places:
        try:
            with open(os.path.join(root, place, "RECORD"), encoding="utf-8") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        for line in lines:
            path, _, size = line.split(",")[:3] if line.count(",") == 2 else ("", "", "")
            if path.endswith(".py") and path.count("/") == 1 and size and _size(os.path.join(root, path)) != int(size):
                yield path


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def _owner(name: str) -> str:
    """The distributions that installed a top-level package, in brackets; "" if none says so."""
    from importlib.metadata import packages_distributions  # 70 ms, spent only where something is wrong

    others = sorted({one for one in packages_distributions().get(name, ()) if one} - {"forecast-scheduler"})
    return f"(of {', '.join(others)}) " if others else ""


def check_own_packages() -> None:
    """End the program with status 2 and one line if a package of another distribution would run in place of ours."""
    if (found := foreign_package()) is not None:
        print(f"forecast-scheduler: {found}", file=sys.stderr)
        sys.exit(2)
