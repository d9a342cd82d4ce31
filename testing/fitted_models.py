"""Models that tests of other things stand on: fitted once per machine for the same sources and the same history.

What is tested of fitting itself calls `forecast.fit.fit`, never this.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

from forecast.fit import fit
from forecast.history import History
from forecast.model import PeakModel
from testing.servers.program_cache import built_once, cache_directory
from testing.timings import timed

T = TypeVar("T")

ROOT: Final = Path(__file__).parents[1]


def fitted(history: History, **options: Any) -> PeakModel:
    """Return `fit(history, **options)`, from the cache if one with these sources was fitted before."""
    return kept(pickle.dumps((history, options)), lambda: fit(history, **options))


def kept(question: bytes, make: Callable[[], T], *packages: str) -> T:
    """Return what `make` returns, from the cache if it was made before for this question by the same sources.

    packages : whose sources count in addition to those of `forecast`
    """
    asked = hashlib.sha256(_sources(("forecast", *packages)) + question).hexdigest()[:16]
    path = built_once(
        cache_directory() / "models" / asked / "kept.pickle",  # a folder each: it is locked while `make` runs
        lambda unfinished: unfinished.write_bytes(pickle.dumps(_made(make))),
    )
    found: T = pickle.loads(path.read_bytes())
    return found


def _made(make: Callable[[], T]) -> T:
    with timed("models"):
        return make()


@cache
def _sources(packages: tuple[str, ...]) -> bytes:
    """Digest of our sources and of the versions of libraries."""
    digest = hashlib.sha256((ROOT / "constraints.txt").read_bytes())
    for package in packages:
        for file in sorted((ROOT / package).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.digest()
