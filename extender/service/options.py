"""How the HTTP service is set up. Where it listens is serving.server's matter."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from forecast.errors import InputError
from serving.hosts import ANY_HOST, Hosts

__all__ = ["ServiceOptions"]


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """Who may ask, how much at a time, and how long kube-scheduler is kept waiting.

    token_files      : files with bearer tokens, one per line. kube-scheduler can send none: for it, use client
                       certificates. None = anybody may ask
    metrics_open     : /metrics needs no token
    max_body_bytes   : of a request; 5,000 node names of 60 characters are 0.3 MB, 5,000 whole nodes tens of MB.
                       All bodies together get 8 times as much memory (serving/body_budget.py)
    max_concurrent   : requests at work at once; more are turned away with 503
    receive_seconds  : by then a body must have arrived
    deadline_seconds : /filter, /prioritize and /preempt are answered by then, if only with a neutral answer
    threads          : that work on those at once; one scheduler asks one question at a time
    bind_seconds     : /bind is answered by then; must be below the extender's httpTimeout (5 s unless configured)
    bind_threads     : bindings under way at once; kube-scheduler binds many pods at a time
    node_metrics     : export the series of each node; 55 per node with five resources
    service_metrics  : export the series of each service; 10 per service with five resources
    hosts            : names under which it is asked (serving/hosts.py)
    """

    token_files: tuple[Path, ...] = ()
    metrics_open: bool = False
    max_body_bytes: int = 4 * 2**20
    max_concurrent: int = 512
    receive_seconds: float = 5.0
    deadline_seconds: float = 0.2
    threads: int = 2
    bind_seconds: float = 4.0
    bind_threads: int = 32
    node_metrics: bool = True
    service_metrics: bool = True
    hosts: Hosts = ANY_HOST

    def __post_init__(self) -> None:
        for name in (
            "max_body_bytes",
            "max_concurrent",
            "receive_seconds",
            "deadline_seconds",
            "threads",
            "bind_seconds",
            "bind_threads",
        ):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} is {getattr(self, name)}: it must be above 0")
