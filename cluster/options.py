"""Settings of the cluster's tables: how long a pod of a job runs, and how long inputs may be relied on."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from base.setting_group import Duration, SettingGroup
from cluster.runs.expected import DEFAULT_RUN
from cluster.water_level import Stacking


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


class KnowledgeOptions(SettingGroup):
    """What the tables may believe; a part of the section `scorer`."""

    default_run: Duration = Field(default=DEFAULT_RUN, ge=1, le=366 * 86_400)
    """How long a pod of a job runs of which nothing is known, in all commands (docs/use/jobs.md)."""

    ladder: Ladder = Field(default_factory=Ladder)


class TableOptions(KnowledgeOptions):
    """The settings, and what other sections of the document say."""

    usage_window: Duration = 300
    """Seconds over which measured usage is averaged. A pod is charged until a whole window has seen it."""

    capacities: Mapping[str, float] = Field(default_factory=dict)
    """Capacities of nodes of which nothing else is known, by resource, base units."""

    job_schedulers: tuple[str, ...] = ("job-scheduler",)
    """Scheduler names of the job profile, whose pods end even if no Job owns them."""

    @property
    def stacking(self) -> Stacking:
        """By which resources pools of nodes fill up, and from which level pods are stacked there."""
        return Stacking()
