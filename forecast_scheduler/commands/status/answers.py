"""How `status` reads what our services and Prometheus answer, and where Prometheus is. Pure: bytes in, facts out.

Functions that decode raise msgspec.DecodeError where the answer is something else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

import msgspec

from forecast_scheduler.commands.status.facts import FiringAlert, Sample, ServiceAnswer, UsedModel

_CLUSTER_ENDS: Final = (".svc.cluster.local", ".svc")


def service_of_url(url: str) -> tuple[str, str, str] | None:
    """Return namespace, name as the API server's proxy takes it (scheme:name:port), and path of a Service that a URL
    means as the cluster's DNS has it; None = another host.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    for end in _CLUSTER_ENDS:
        host = host.removesuffix(end)
    name, _, namespace = host.partition(".")
    if parts.scheme not in ("http", "https") or not namespace or "." in namespace or name.isdigit():
        return None
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return namespace, f"{parts.scheme}:{name}:{port}", parts.path.rstrip("/")


class _Model(msgspec.Struct):
    version: str
    age_seconds: float
    refused: str | None = None


class _Status(msgspec.Struct):
    """Of ScorerStatus, what counts here: a command of one version asks parts of another."""

    level: int
    reasons: tuple[str, ...]
    ready: bool
    nodes: int
    measured_nodes: int
    not_ready_because: str | None = None
    model: _Model | None = None
    refused_model: str | None = None


def answer_of(body: bytes) -> ServiceAnswer:
    """Return what a part says at /v1/status."""
    said = msgspec.json.decode(body, type=_Status)
    model = said.model
    refused = said.refused_model or (model.refused if model else None) or ""
    return ServiceAnswer(
        level=said.level,
        reasons=said.reasons,
        ready=said.ready,
        not_ready_because=said.not_ready_because or "",
        model=UsedModel(model.version, model.age_seconds, refused) if model else None,
        measured_nodes=said.measured_nodes,
        nodes=said.nodes,
    )


class _Series(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Vector(msgspec.Struct):
    result: list[_Series]


class _QueryAnswer(msgspec.Struct):
    data: _Vector


class _Alert(msgspec.Struct):
    labels: dict[str, str]
    annotations: dict[str, str]
    state: str


class _Alerts(msgspec.Struct):
    alerts: list[_Alert]


class _AlertsAnswer(msgspec.Struct):
    data: _Alerts


def samples_of(body: bytes) -> tuple[Sample, ...]:
    """Return the vector that a query answers."""
    series = msgspec.json.decode(body, type=_QueryAnswer).data.result
    return tuple(Sample(one.metric.get("__name__", ""), one.metric, float(one.value[1])) for one in series)


def alerts_of(body: bytes) -> tuple[FiringAlert, ...]:
    """Return the alerts of ours that fire, one for each name and severity, the most severe first."""
    found = dict[tuple[str, str], FiringAlert]()
    for one in msgspec.json.decode(body, type=_AlertsAnswer).data.alerts:
        name, severity, said = one.labels.get("alertname", ""), one.labels.get("severity", ""), one.annotations
        if one.state != "firing" or not name.startswith("Forecast"):
            continue
        about = said.get("summary", ""), said.get("action", ""), said.get("runbook_url", "")
        first = found.setdefault((name, severity), FiringAlert(name, severity, *about, number=0))
        found[name, severity] = replace(first, number=first.number + 1)
    order = {"critical": 0, "warning": 1}
    return tuple(sorted(found.values(), key=lambda alert: (order.get(alert.severity, 2), alert.name)))
