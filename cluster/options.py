"""Settings of the cluster's tables: how long a pod of a job runs, and how long inputs may be relied on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from base.setting_group import Duration, SettingGroup
from cluster.runs.expected import DEFAULT_RUN
from cluster.water_level import Stacking


@dataclass(frozen=True, slots=True)
class Ladder:
    """How long the scorer's inputs may be relied on, in seconds (docs/use/scorer.md).

    fresh_model  : up to this age the model was made for today: a night may be late by half a day
    oldest_model : a model older than this does not enter scores: two weeks have passed it by
    fresh_usage  : for this time a node's last measurement says what it uses now
    oldest_state : for this time the cluster as last heard of resembles the real one
    """

    fresh_model: float = 36 * 3600
    oldest_model: float = 14 * 86_400
    fresh_usage: float = 300
    oldest_state: float = 900


class KnowledgeOptions(SettingGroup):
    """What the tables may believe; a part of the section `scorer`."""

    default_run: Duration = Field(default=DEFAULT_RUN, ge=1, le=366 * 86_400)
    """How long a pod of a job runs of which nothing is known, in all commands (docs/use/jobs.md)."""

    ladder: ClassVar[Ladder] = Ladder()


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
