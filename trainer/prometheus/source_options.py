"""What to read from a Prometheus server, and how."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainer.prometheus.log_gauge import DEFAULT_ROTATION_CAP_BYTES
from trainer.prometheus.log_source import LogSource
from trainer.prometheus.queries import Queries

__all__ = ["SourceOptions"]


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What to read and how.

    step_seconds     : of the samples; must divide an hour
    max_samples      : most points asked for in one query
    parallel         : queries under way at once
    *_capacity       : bytes/s every node can do, which Prometheus does not know; None = not a limit, for the network
                       the speed of the physical interfaces
    """

    step_seconds: int = 300
    queries: Queries = field(default_factory=Queries)
    log_source: LogSource = LogSource.AUTO
    log_rotation_cap_bytes: float = DEFAULT_ROTATION_CAP_BYTES
    max_samples: int = 2_000_000
    parallel: int = 4
    use_recording_rules: bool = True
    disk_capacity: float | None = None
    network_capacity: float | None = None
    log_capacity: float | None = None
