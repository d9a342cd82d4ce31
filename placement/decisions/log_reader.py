"""Reads decision logs back: several files, rotated and compressed ones, with torn lines in them."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from base.errors import InputError
from placement.decisions.decision import Decision
from placement.decisions.log_line import decision_from_json

STDIN = Path("-")
"""The name that means standard input."""

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class DecisionsRead:
    """decisions: in the order of time; unreadable: lines that are none; repeated: of a pod (uid) that came again."""

    decisions: tuple[Decision, ...]
    unreadable: int
    repeated: int


def read_decisions(files: Sequence[Path]) -> DecisionsRead:
    """All decisions of the files; - is standard input. Of several lines about one pod the latest counts: two files may
    overlap.

    Raises InputError for a file that cannot be read, and where there is no decision.
    """
    by_pod: dict[str, Decision] = {}
    unreadable = n_lines = 0
    for file in files:
        for line in _lines(file):
            if not line.strip():
                continue
            n_lines += 1
            try:
                document = orjson.loads(line)
                decision = decision_from_json(document if isinstance(document, dict) else {})
            except (ValueError, OverflowError):
                unreadable += 1
                continue
            key = decision.uid or f"{decision.pod} {decision.time}"
            known = by_pod.get(key)
            if known is None or known.time <= decision.time:
                by_pod[key] = decision
    if not by_pod:
        names = ", ".join(str(file) for file in files) or "no file"
        found = f"{n_lines} lines, none of them a decision" if n_lines else "nothing"
        raise InputError(f"{names} holds {found}: name what extender or schedule wrote with --decisions FILE")
    decisions = tuple(sorted(by_pod.values(), key=lambda decision: (decision.time, decision.pod)))
    return DecisionsRead(decisions, unreadable, n_lines - unreadable - len(decisions))


def _lines(file: Path) -> Iterable[bytes]:
    if file == STDIN:
        yield from sys.stdin.buffer
        return
    try:
        with file.open("rb") as raw:
            compressed = raw.read(2) == _GZIP
        with gzip.open(file) if compressed else file.open("rb") as lines:
            yield from lines
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"the decision log {file} cannot be read ({reason}): name a file that extender or schedule wrote"
        ) from (error)
