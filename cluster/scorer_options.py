"""Settings of what the scorer computes, in the section `scorer`, and what commands add to them."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from base.setting_group import Duration, SettingGroup
from scorer.scores.options import ScoreOptions


class Ladder(SettingGroup):
    """How long the scorer's inputs may be relied on (docs/use/scorer.md)."""

    fresh_model: Duration = Field(default=36 * 3600, gt=0)
    """Up to this age the model was made for today."""

    oldest_model: Duration = Field(default=14 * 86_400, gt=0)
    """A model older than this does not enter scores."""

    fresh_usage: Duration = Field(default=300, gt=0)
    """For this time a node's last measurement says what it uses now."""

    oldest_state: Duration = Field(default=900, gt=0)
    """For this time the cluster as last heard of resembles the real one."""


class ScoringOptions(SettingGroup):
    """What the scorer computes, and how often."""

    usage_every: Duration = Field(default=30, ge=1)
    """Time between two measurements of the usage of all nodes."""

    model_every: Duration = Field(default=30, ge=1)
    """Time between two looks for a new model."""

    overview_every: Duration = Field(default=60, ge=1)
    """Time between two computations of the peaks of all nodes for page and metrics."""

    scale_out_every: Duration = Field(default=300, ge=1)
    """Time after which room for replicas still to come is shared out anew."""

    self_check_every: Duration = Field(default=3600, ge=0)
    """Time between two comparisons of the tables with a rebuild. 0: only when /v1/self-check is asked."""

    default_run: Duration = Field(default=600, ge=1, le=366 * 86_400)
    """How long a pod of a job runs of which nothing is known, in all commands (docs/use/jobs.md)."""

    scores: ScoreOptions = Field(default_factory=ScoreOptions)
    ladder: Ladder = Field(default_factory=Ladder)


class ScorerOptions(ScoringOptions):
    """The settings, and what other sections of the document say."""

    usage_window: Duration = 300
    """Seconds over which measured usage is averaged. A pod is charged until a whole window has seen it."""

    capacities: Mapping[str, float] = Field(default_factory=dict)
    """Capacities of nodes of which nothing else is known, by resource, base units."""

    job_schedulers: tuple[str, ...] = ("job-scheduler",)
    """Scheduler names of the job profile, whose pods end even if no Job owns them."""
