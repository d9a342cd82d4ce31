"""How the HTTP service is set up. Where it listens is server.py's matter."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from forecast.errors import InputError
from serving.hosts import ANY_HOST, Hosts

__all__ = ["ServiceOptions"]


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """Who may ask, how much at a time, and which metrics are exported.

    token_files         : files with bearer tokens, one per line; read again when they change. None = anybody may ask
    metrics_open        : /metrics needs no token
    max_body_bytes      : of a request; 50,000 node names of 60 characters are 3 MB. All bodies together get 8 times as
                          much memory (body_budget.py)
    max_concurrent      : requests at work at once; more are turned away with 503 rather than queued past their deadline
    deadline_seconds    : a request is answered by then, if only with 503
    max_nodes           : node names in one request
    node_metrics        : export the series of each node; 55 per node with five resources
    service_metrics     : export the series of each service; 10 per service with five resources
    hosts               : names under which it is asked (hosts.py)
    report              : page that is offered at /report; None = none
    """

    token_files: tuple[Path, ...] = ()
    metrics_open: bool = False
    max_body_bytes: int = 3 * 2**20
    max_concurrent: int = 256
    deadline_seconds: float = 10.0
    max_nodes: int = 50_000
    node_metrics: bool = True
    service_metrics: bool = True
    report: Path | None = None
    hosts: Hosts = ANY_HOST

    def __post_init__(self) -> None:
        for name in ("max_body_bytes", "max_concurrent", "deadline_seconds", "max_nodes"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} is {getattr(self, name)}: it must be above 0")
