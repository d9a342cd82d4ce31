"""Requests, and the answers that are no class of scorer/answers.py, as they cross HTTP.

msgspec rather than pydantic: 5,000 node names decode, and 5,000 scores encode, in a fraction of a millisecond.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from scorer.answers import LevelNumber
from scorer.scorer_api import Scored


class ErrorBody(Struct):
    """What is wrong, and the way out, in one sentence."""

    error: str


class HealthBody(Struct):
    """The process answers."""

    ok: bool


class ScoresRequest(Struct, forbid_unknown_fields=True):
    """Which nodes are how good for a pod?"""

    pod: Raw
    nodes: list[str] | None = None
    weights: dict[str, float] | None = None
    ranking: bool = False


class ChargeRequest(Struct, forbid_unknown_fields=True):
    """A pod will probably be bound to a node: count it there until its binding is seen, or for `seconds`."""

    pod: Raw
    node: str
    seconds: Annotated[float, Meta(gt=0, le=60)] = 2.0


class ChargeBody(Struct):
    """Whether the node is known, and so was charged."""

    charged: bool


class ExplainRequest(Struct, forbid_unknown_fields=True):
    """The same question, with reasons for the best `top` nodes."""

    pod: Raw
    nodes: list[str] | None = None
    weights: dict[str, float] | None = None
    top: Annotated[int, Meta(ge=1, le=1000)] = 10


class PodReference(Struct):
    """A pod of the cluster by name, unless `spec` or `metadata` say that it is a whole Pod object."""

    namespace: str | None = None
    name: str | None = None
    metadata: Raw | UnsetType = UNSET
    spec: Raw | UnsetType = UNSET


class ScoresBody(Struct):
    """Scores 0..100 by node, higher is better; nodes not known to the scorer get a neutral score.

    `ranking`, where it was asked for, is the same without the limits: overloaded nodes go on falling below 0.
    """

    scores: dict[str, float]
    level: LevelNumber
    reasons: list[str]
    model: Annotated[str | None, Meta(description="Version of the model; null = none is in use.")]
    weights: dict[str, float]
    unknown_nodes: list[str]
    policy: Annotated[str, Meta(description="By which the pod was scored.")] = ""
    ranking: dict[str, float] | UnsetType = UNSET

    @classmethod
    def from_scored(cls, scored: Scored, *, ranking: bool = False) -> ScoresBody:
        """Scores by node, and the ranking where it was asked for."""
        scores, ranks = (np.round(values, 4).tolist() for values in (scored.scores, scored.ranking))
        return cls(
            scores=dict(zip(scored.nodes, scores, strict=True)),
            level=scored.level,
            reasons=list(scored.reasons),
            model=scored.model_version,
            weights=dict(scored.weights),
            unknown_nodes=[str(name) for name in scored.unknown_nodes],
            policy=scored.policy,
            ranking=dict(zip(scored.nodes, ranks, strict=True)) if ranking else UNSET,
        )
