"""Settings of what the scorer computes, in the section `scorer`, and what commands add to them."""

from __future__ import annotations

from pydantic import Field

from base.setting_group import Duration
from cluster.options import KnowledgeOptions, TableOptions
from cluster.water_level import Stacking
from scorer.scores.score_settings import ScoreOptions


class ScoringOptions(KnowledgeOptions):
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

    scores: ScoreOptions = Field(default_factory=ScoreOptions)


class ScorerOptions(ScoringOptions, TableOptions):
    """The settings, and what other sections of the document say."""

    @property
    def stacking(self) -> Stacking:
        """By which resources pools of nodes fill up, and from which level pods are stacked there."""
        return Stacking(self.scores.request_weights, self.scores.water_levels)
