"""A process that publishes and is killed or starved; started by test_registry_crash.

    python -m tests.forecast.publisher_process kill-at-call DIR     child k is killed at its k-th call into the disk
    python -m tests.forecast.publisher_process kill-at-random DIR   children publish for ever, SIGKILL comes any time
    python -m tests.forecast.publisher_process small-files DIR      files may not grow beyond 1 KiB (RLIMIT_FSIZE)

Prints one line per attempt: what `load` gives afterwards, as JSON. Children are forked, which makes hundreds of kills
cheap; that is why this is not done within pytest, where threads of other tests may run.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from forecast.errors import PublishError
from forecast.published_models import Registry
from tests.forecast.artefacts import artefact_of, value_of

# Everything through which a publish changes the disk.
_CALLS = ("open", "fdopen", "fsync", "chmod", "replace", "unlink", "rmdir", "mkdir")


def main(mode: str, directory: str) -> None:
    {"kill-at-call": kill_at_call, "kill-at-random": kill_at_random, "small-files": small_files}[mode](directory)


def registry_of(directory: str) -> Registry:
    # Leftovers count as old at once, so that the cleaning of leftovers is interrupted as well.
    return Registry(directory, keep=2, leftover_age=timedelta(0))


def kill_at_call(directory: str) -> None:
    for at in range(1000):
        # A publish that is left alone first removes what the killed one before it has left.
        registry_of(directory).publish(artefact_of(2 * at))
        child = os.fork()
        if child == 0:
            die_at_call(at)
            registry_of(directory).publish(artefact_of(2 * at + 1))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        report(directory, at=at, finished=status == 0)
        if status == 0:
            return


def kill_at_random(directory: str) -> None:
    rng = random.Random(4)
    begun = time.monotonic()
    registry_of(directory).publish(artefact_of(0))
    usual_seconds = time.monotonic() - begun
    values, at = {0}, 0
    # On a busy machine many are killed before their first publish is through: go on until enough were not.
    while (at < 40 or len(values) < 10) and at < 500:
        child = os.fork()
        if child == 0:
            for value in range(1_000):  # all values stay below 2**24, up to which float32 holds every integer
                registry_of(directory).publish(artefact_of(at * 1_000 + value + 1, n_services=50))
        time.sleep(rng.uniform(0.0, 4 * usual_seconds))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        values.add(report(directory, at=at, finished=False))
        at += 1


def small_files(directory: str) -> None:
    registry_of(directory).publish(artefact_of(0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write then fails with EFBIG instead
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))
    try:
        registry_of(directory).publish(artefact_of(1))
    except PublishError as error:
        report(directory, error=str(error))


def report(directory: str, **facts: Any) -> int:
    """Print what is in use and what else is there; returns the value in use."""
    registry = registry_of(directory)
    loaded = registry.load()
    values = [value_of(registry.load(version)) for version in registry.versions()]
    print(json.dumps({"value": value_of(loaded), "versions": values, **facts}), flush=True)
    return value_of(loaded)


def die_at_call(at: int) -> None:
    """Make this process kill itself before the at-th call to one of _CALLS."""
    act_at_call(at, lambda: os.kill(os.getpid(), signal.SIGKILL))


def act_at_call(at: int, act: Callable[[], None]) -> None:
    """Do something before the at-th call of this process to one of _CALLS."""
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


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main(*sys.argv[1:])
