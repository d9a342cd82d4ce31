"""Reads decision logs back: several files, rotated and compressed ones, with torn or edited lines in them."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from base.errors import InputError
from placement.decisions.decision import Decision
from scorer.answers import Peak

_YEARS = range(2000, 9000)
"""Of readable times: far from the ends of the calendar, where time zones cannot be reckoned with."""

STDIN = Path("-")
"""The name that means standard input."""

_GZIP = b"\x1f\x8b"


def decision_from_json(line: Mapping[str, Any]) -> Decision:
    """The decision that an object of the log stands for. Raises ValueError where it is none."""
    pod, node = line.get("pod"), line.get("node")
    if not (isinstance(pod, str) and pod and isinstance(node, str) and node):
        raise ValueError("no pod or no node")
    top, reasons = line.get("top"), line.get("reasons")
    at = _moment(line.get("time"))
    advised_at = line.get("advised_at")
    return Decision(
        time=at,
        advised_at=at if advised_at is None else _moment(advised_at),
        pod=pod,
        uid=_str(line.get("uid")) or "",
        service=_str(line.get("service")) or "",
        node=node,
        advised_node=_str(line.get("advised_node")),
        points=_int(line.get("points")),
        advised_points=_int(line.get("advised_points")),
        runner_up=_str(line.get("runner_up")),
        margin=_int(line.get("margin")),
        rank=_int(line.get("rank")),
        nodes=_int(line.get("nodes")) or 0,
        top={str(name): _int(value) or 0 for name, value in top.items()} if isinstance(top, dict) else {},
        peak=_peak(line.get("expected_peak")),
        level=_str(line.get("level")) or "",
        reasons=tuple(str(reason) for reason in reasons) if isinstance(reasons, list) else (),
        model_version=_str(line.get("model")),
        model_age_seconds=_float(line.get("model_age_seconds")),
        metrics_age_seconds=_float(line.get("metrics_age_seconds")),
        seconds=_float(line.get("seconds")) or 0.0,
        is_shadow=line.get("shadow") is True,
        is_late=line.get("late") is True,
        version=_str(line.get("version")) or "",
        policy=_str(line.get("policy")) or "",
        policy_because=_str(line.get("policy_because")) or "",
        elsewhere_because=_str(line.get("elsewhere_because")) or "",
    )


def _moment(text: Any) -> float:
    """Unix seconds of an RFC 3339 time. Raises ValueError."""
    if not isinstance(text, str):
        raise ValueError("no time")
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a time without its offset")
    if moment.year not in _YEARS:
        raise ValueError("a time at which this program did not exist")
    return moment.timestamp()


def _peak(value: Any) -> Peak | None:
    try:
        return None if value is None else msgspec.convert(value, Peak)
    except msgspec.ValidationError:
        return None


def _str(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _int(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _float(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


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
                document = msgspec.json.decode(line)
                decision = decision_from_json(document if isinstance(document, dict) else {})
            except (ValueError, OverflowError, RecursionError):
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
