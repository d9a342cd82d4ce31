"""The writing half of a nightly run, killed or refused at every step; started by test_night_crash.

    python -m tests.trainer.night_process kill DIR              night k is killed before its k-th call into the disk
    python -m tests.trainer.night_process ERRNO DIR             its k-th call fails so, ENOSPC for instance

A night takes the lease, publishes a model, keeps what it forecasts and leaves its metrics. After each, another night is
left alone. Prints a line of JSON for each: what the first came to, what was in use after it, and after the second.
Nights are forked: hundreds of kills are cheap by that.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from base.errors import ForecastError
from base.object_store import open_store
from forecast.model import PeakModel
from forecast.published_models import Registry
from testing.fitted_models import fitted
from tests.forecast.artefacts import artefact_of, value_of
from tests.synthetic import synthetic_history
from trainer.issued_forecasts import load_issued, store_issued
from trainer.run_lease import hold_lease
from trainer.run_metrics import RunFigures, write_textfile

FINISHED, FAILED, MISTAKE, FORGIVEN = 0, 3, 4, 5
"""Exit statuses of a night: done and left alone, an error of ours, any other exception, done although a call failed."""


def main(mode: str, place: str) -> None:
    model = fitted(synthetic_history(n_days=14, n_services=2))
    if mode == "kill":
        at_calls(model, place, lambda: os.kill(os.getpid(), signal.SIGKILL))
    else:
        at_calls(model, place, lambda: _refuse(mode))


def at_calls(model: PeakModel, directory: str, act: Callable[[], None]) -> None:
    def disturbed() -> None:
        _act_at_call(at, act)
        night(model, directory, 2 * at + 1)

    for at in range(1000):
        status = _forked(disturbed)
        _report(model, directory, at, status)
        if status == FINISHED:
            return


def night(model: PeakModel, place: str, value: int) -> None:
    """value: of all numbers of the model that is published. Its forecasts are those of `model`."""
    with hold_lease(place, sleep=lambda seconds: None) as check:
        registry = _registry(place)
        version = registry.publish(artefact_of(value), before_use=check)
        first_day = model.first_day + timedelta(days=value % 5)
        store_issued(open_store(place), replace(model, first_day=first_day), version)
    write_textfile(Path(place) / "metrics" / "night.prom", RunFigures(finished=datetime.now(UTC).timestamp()))


def _registry(place: str) -> Registry:
    return Registry(place, keep=2, leftover_age=timedelta(0))


def _report(model: PeakModel, place: str, at: int, status: int) -> None:
    used = _forked_value(place)
    again = _forked(lambda: night(model, place, 2 * at + 2))
    print(json.dumps({"at": at, "status": status, "used": used, "again": again, "then": _forked_value(place)}))
    sys.stdout.flush()


def _forked(work: Callable[[], object]) -> int:
    """Exit status; negative = the signal that ended it."""
    child = os.fork()
    if child == 0:
        status = MISTAKE
        try:
            work()
            status = FORGIVEN if _refused else FINISHED
        except ForecastError as error:
            print(error, file=sys.stderr, flush=True)
            status = FAILED
        except BaseException as error:
            print("MISTAKE", repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _forked_value(place: str) -> int | None:
    """What readers find: the model in use, and that all there is of issued forecasts is readable; None = no model."""
    reading, writing = os.pipe()

    def read() -> None:
        registry = _registry(place)
        found = None if registry.latest() is None else value_of(registry.load())
        for version in registry.versions():
            value_of(registry.load(version))
        load_issued(open_store(place), [datetime(2026, 1, 1).date()])
        os.write(writing, json.dumps(found).encode())

    assert _forked(read) == FINISHED
    os.close(writing)
    with os.fdopen(reading) as stream:
        found: int | None = json.loads(stream.read())
    return found


# Everything through which a night changes the disk.
_CALLS = ("open", "fdopen", "fsync", "chmod", "replace", "unlink", "rmdir", "mkdir")


def _act_at_call(at: int, act: Callable[[], None]) -> None:
    """Do something before the at-th call of this process to one of these."""
    left = at

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            if left == 0:
                act()
            left -= 1
            return call(*args, **kwargs)

        return wrapper

    for name in _CALLS:
        setattr(os, name, counted(getattr(os, name)))


_refused: list[str] = []


def _refuse(name: str) -> None:
    _refused.append(name)
    number = getattr(errno, name)
    raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    main(*sys.argv[1:])
