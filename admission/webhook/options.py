"""How the webhook is served. Where it listens is serving.server's matter."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from forecast.errors import InputError
from serving.hosts import ANY_HOST, Hosts

__all__ = ["WebhookOptions"]


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """Who may ask, and how much at a time.

    token_files     : files with bearer tokens, one per line (docs/webhook.md says how an API server sends one).
                      None = anybody may ask
    metrics_open    : /metrics needs no token
    max_body_bytes  : of a request; the API server takes requests up to 3 MiB. All bodies together
                      get 8 times as much memory (serving/body_budget.py)
    max_concurrent  : requests at work at once; more are turned away with 503, and failurePolicy decides
    receive_seconds : by then a body must have arrived
    hosts           : names under which it is asked (serving/hosts.py)
    """

    token_files: tuple[Path, ...] = ()
    metrics_open: bool = False
    max_body_bytes: int = 3 * 2**20
    max_concurrent: int = 256
    receive_seconds: float = 5.0
    hosts: Hosts = ANY_HOST

    def __post_init__(self) -> None:
        for name in ("max_body_bytes", "max_concurrent", "receive_seconds"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} is {getattr(self, name)}: it must be above 0")
