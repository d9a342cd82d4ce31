"""The decision log: one JSON object a line for each pod that was advised on and bound, to a file or standard output.

Writing happens behind an outbox. If the disk is full or hangs, lines are lost and counted, and one warning is logged.
No answer waits for the disk.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from base.errors import InputError
from kube.failure_notice import FailureNotice
from kube.outbox import Outbox
from placement.decisions.decision import Binding, decision_of, slimmed
from placement.decisions.rotating_file import RotatingFile

logger = logging.getLogger(__name__)

STDOUT = Path("-")
"""The name that means standard output."""

_MAX_WAITING = 2_000
_MAX_WAITING_NODES = 500_000
"""Node names and points held by what waits to be written, 80 MB at most; beyond it only the best two nodes are kept."""

_STDOUT_DESCRIPTOR = 1


@dataclass(frozen=True, slots=True)
class LogFigures:
    """Decisions since the start. dropped: the queue was full; failed: they could not be written."""

    written: int
    dropped: int
    failed: int


class DecisionLog:
    """Takes bindings from any thread, writes them as lines in its own."""

    def __init__(self, write: Callable[[bytes], None], *, name: str, close: Callable[[], None] = lambda: None) -> None:
        """write: lines, raising OSError; name: of the place, for messages."""
        self._write, self._name, self._close = write, name, close
        self._written = self._failed = 0
        self._notice = FailureNotice(
            logger, "decisions are not logged, scheduling goes on", "the decision log is written again"
        )
        self._outbox: Outbox[Binding] = Outbox("decision-log", self._append, max_items=_MAX_WAITING)

    def start(self) -> None:
        self._outbox.start()

    def stop(self, timeout: float = 2.0) -> None:
        """Write what waits, if that takes no longer than `timeout` seconds, and close."""
        self._outbox.stop(timeout)
        self._close()

    def take(self, binding: Binding) -> None:
        """Write it soon. Never waits."""
        weight = len(binding.advice.nodes)
        if self._outbox.weight + weight > _MAX_WAITING_NODES:
            binding = replace(binding, advice=slimmed(binding.advice))
            weight = 0
        self._outbox.put(binding, weight)

    @property
    def figures(self) -> LogFigures:
        return LogFigures(self._written, self._outbox.refused, self._failed)

    def _append(self, bindings: Sequence[Binding]) -> None:
        lines = []
        for binding in bindings:
            try:
                lines.append(orjson.dumps(decision_of(binding).to_json()) + b"\n")
            except Exception as error:  # a text that is no Unicode, a time beyond the calendar
                self._fail(1, f"a decision cannot be written as JSON: {error}")
        if not lines:
            return
        try:
            self._write(b"".join(lines))
        except (OSError, ValueError) as error:
            self._fail(len(lines), str(error))
            return
        self._written += len(lines)
        self._notice.succeeded(log=self._name, lost=self._failed)

    def _fail(self, n_decisions: int, why: str) -> None:
        self._failed += n_decisions
        self._notice.failed(why, log=self._name)


def open_decision_log(path: Path, *, max_bytes: int = 100 << 20, keep: int = 5) -> DecisionLog:
    """The log in a file, rotated at max_bytes (0 = never) with `keep` old files next to it, or standard output for `-`.

    Raises InputError where the file cannot be written.
    """
    if path == STDOUT:
        return DecisionLog(_to_stdout, name="standard output")
    try:
        file = RotatingFile(path, max_bytes=max_bytes, keep=keep)
    except OSError as error:
        raise InputError(
            f"the decision log {path} cannot be written ({error.strerror or error}): name a file in a directory that "
            "exists and may be written, or - for standard output"
        ) from error
    return DecisionLog(file.write, name=str(path), close=file.close)


def _to_stdout(lines: bytes) -> None:
    rest = memoryview(lines)
    while rest:
        rest = rest[os.write(_STDOUT_DESCRIPTOR, rest) :]
