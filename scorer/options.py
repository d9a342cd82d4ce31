"""Settings of what the scorer computes, in the section `scorer`, and what commands add to them."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from base.setting_group import Duration
from cluster.options import KnowledgeOptions, TableOptions
from cluster.water_level import Stacking
from scorer.scores.score_settings import ScoreOptions


class ScoringOptions(KnowledgeOptions):
    """What the scorer computes, and how often."""

    usage_every: Duration = Field(default=30, ge=1, le=150)
    """Time between two measurements of the usage of all nodes. A measurement counts for 5 minutes."""

    model_every: ClassVar[float] = 30.0
    """Seconds between two looks for a new model, each a read of one small file."""

    overview_every: ClassVar[float] = 60.0
    """Seconds between two computations of the peaks of all nodes for page and metrics: as often as Prometheus reads."""

    scale_out_every: ClassVar[float] = 300.0
    """Seconds after which room for replicas still to come is shared out anew."""

    self_check_every: ClassVar[float] = 3600.0
    """Seconds between two comparisons of the tables with a rebuild."""

    scores: ScoreOptions = Field(default_factory=ScoreOptions)


class ScorerOptions(ScoringOptions, TableOptions):
    """The settings, and what other sections of the document say."""

    @property
    def stacking(self) -> Stacking:
        """By which resources pools of nodes fill up, and from which level pods are stacked there."""
        return Stacking(self.scores.request_weights, self.scores.water_levels)
