"""Independent pieces of work, wherever the caller's joblib configuration sends them.

The forecast package only says which pieces do not depend on each other. Around it, `joblib.parallel_config` decides:
nothing configured runs them here, one after another; `backend="loky"` in processes of this machine, `backend="dask"` on
an existing cluster. A piece is a function of its arguments, so the results are the same bits everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from joblib import Parallel, delayed, effective_n_jobs

Result = TypeVar("Result")

_FEWEST_AT_ONCE, _EACH_AT_ONCE = 16, 4


def run_all(function: Callable[..., Result], arguments: Iterable[tuple[object, ...]]) -> Iterator[Result]:
    """function(*a) for each a, in order. Both must be picklable where they may leave this process."""
    # One tuple each: joblib's Dask backend would place bare arrays on a worker beforehand, and they would be lost for
    # good with that worker. A tuple travels with its task, which Dask runs again elsewhere.
    pieces = (delayed(_apply)(function, each) for each in arguments)
    try:
        # One result at a time: all curves of a large cluster at once would double the memory of a fit.
        parallel = Parallel(return_as="generator")
    except ValueError:
        # Dask's backend hands out finished lists only, and holds what it was given until then: a few for each worker.
        at_once = max(_FEWEST_AT_ONCE, _EACH_AT_ONCE * effective_n_jobs())
        while batch := list(islice(pieces, at_once)):
            yield from Parallel()(batch)
        return
    yield from parallel(pieces)


def _apply(function: Callable[..., Result], arguments: tuple[object, ...]) -> Result:
    return function(*arguments)
