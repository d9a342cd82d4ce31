"""What can be set about the scorer, apart from where it listens and what it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scorer.degradation import Ladder
from scorer.runs.expected import DEFAULT_RUN
from scorer.scores.catalogue import DEFAULT_WEIGHTS
from scorer.scores.parameters import ScoreParameters

__all__ = ["ScorerOptions"]


@dataclass(frozen=True, slots=True)
class ScorerOptions:
    """Durations in seconds.

    weights          : of the scores that are summed, by name (docs/scores.md)
    parameters       : of the scores themselves
    ladder           : how long inputs may be relied on
    usage_window     : over which measured usage is averaged; a pod is charged until a whole window has seen it
    usage_every      : how often usage is measured
    model_every      : how often it is looked whether a new model has been published
    soft_load_every  : how often room for replicas still to come is spread anew
    overview_every   : how often the peaks of all nodes are computed for page and metrics
    self_check_every : how often the tables are compared with a rebuild; 0 = only when asked
    capacities       : of nodes of which nothing else is known, by resource, base units
    default_run      : how long a pod of a job runs of which nothing is known
    job_schedulers   : scheduler names of the job profile, whose pods end even if no Job owns them
    """

    weights: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_WEIGHTS))
    parameters: ScoreParameters = field(default_factory=ScoreParameters)
    ladder: Ladder = field(default_factory=Ladder)
    usage_window: float = 300.0
    usage_every: float = 30.0
    model_every: float = 30.0
    soft_load_every: float = 300.0
    overview_every: float = 60.0
    self_check_every: float = 3600.0
    capacities: Mapping[str, float] = field(default_factory=dict)
    default_run: float = DEFAULT_RUN
    job_schedulers: tuple[str, ...] = ("job-scheduler",)
