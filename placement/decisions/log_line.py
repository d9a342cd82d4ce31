"""A decision read back from its line in the log, which may have been edited."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from placement.decisions.decision import Decision

_YEARS = range(2000, 9000)
"""Of readable times: far from the ends of the calendar, where time zones cannot be reckoned with."""


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
        predicted_share=_float(line.get("predicted_share")),
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


def _str(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _int(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _float(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
