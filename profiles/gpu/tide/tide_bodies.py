"""What crosses HTTP, field by field; the OpenAPI document is made from these classes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

from msgspec import Meta, Struct


class TidePointBody(Struct):
    """A half hour of a pool."""

    start: datetime
    expected_gpus: Annotated[float, Meta(description="That inference is expected to need.")]
    needed_gpus: Annotated[float, Meta(description="The same with margins: kept free of training.")]
    training_gpus: Annotated[
        float | None, Meta(description="That training is planned to have; null = so far ahead nothing is.")
    ]


class TidePoolBody(Struct):
    """GPUs of one card model."""

    pool: str
    capacity_gpus: float
    inference_gpus: Annotated[float, Meta(description="Held now by pods that are no training's.")]
    waiting_gpus: Annotated[float, Meta(description="That pods of inference wait for now.")]
    training_gpus: Annotated[float, Meta(description="Held now by pods of training.")]
    ahead: Annotated[list[TidePointBody], Meta(description="The half hour under way first.")]


class TideTrainingBody(Struct):
    """A training as the plan saw it."""

    training: Annotated[str, Meta(description="Namespace, kind and name of the workload.")]
    pool: str
    gpus_per_replica: float
    replicas: int
    min_replicas: int
    max_replicas: int
    lead_seconds: Annotated[float, Meta(description="From the request until its GPUs are free.")]
    stopped: Annotated[bool, Meta(description="The tide has stopped it as a whole, and will have it resume.")]
    pods_wait: Annotated[bool, Meta(description="Some of its pods wait for a node: it does not grow.")]
    moves_today: int
    mistakes: Annotated[str, Meta(description="What of its annotations cannot be read.")]


class TideMoveBody(Struct):
    """A move of a training."""

    training: str
    kind: Annotated[str, Meta(description="shrink, take (stopped as a whole), resume or grow.")]
    at: datetime
    before: int
    after: int
    gpus: Annotated[float, Meta(description="That come free or are taken.")]
    beyond_cap: bool
    why: str
    outcome: Annotated[str, Meta(description="What became of it; '' = it is planned.")]


class TideBody(Struct):
    """The tide between inference and training."""

    made: datetime
    no_forecast_because: Annotated[
        str | None, Meta(description="Why training may not grow; null = there is a forecast.")
    ]
    writes_nothing_because: Annotated[str | None, Meta(description="null = moves are carried out.")]
    pools: list[TidePoolBody]
    trainings: list[TideTrainingBody]
    moves: Annotated[list[TideMoveBody], Meta(description="The latest, newest first.")]
    ahead: Annotated[list[TideMoveBody], Meta(description="Planned, if all comes as forecast.")]
    unread: Annotated[dict[str, str], Meta(description="Workloads that could not be read, and why.")]


TIDE_BODIES: Final = (TideBody, TideMoveBody, TidePointBody, TidePoolBody, TideTrainingBody)
"""For the OpenAPI document."""
