"""What a workload or its pods say about the tide, in annotations:

    forecast-scheduler.io/tide: training             or inference
    forecast-scheduler.io/min-replicas: "2"          of a training: its fewest replicas
    forecast-scheduler.io/max-replicas: "16"         and its most; it is elastic if they differ
    forecast-scheduler.io/checkpoint-grace: 10m      time from the request until its GPUs are free

Those of the workload count before those of its pods. An unreadable value counts as missing, and is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from base.setting_group import DURATION_EXAMPLES, duration_seconds
from kube.objects.objects import ANNOTATION_PREFIX

TIDE: Final = ANNOTATION_PREFIX + "tide"
"""Annotation of pods and workloads; label of workloads, by which those without pods are found again."""
LEAST: Final = ANNOTATION_PREFIX + "min-replicas"
LARGEST: Final = ANNOTATION_PREFIX + "max-replicas"
GRACE: Final = ANNOTATION_PREFIX + "checkpoint-grace"

_MOST_REPLICAS: Final = 100_000
_LONGEST_GRACE: Final = 86_400.0


class Role(Enum):
    """Which side of the tide a pod is on."""

    TRAINING = "training"
    INFERENCE = "inference"
    UNSAID = ""  # it is no training, and its waiting pods get no room at once


@dataclass(frozen=True, slots=True)
class TrainingTerms:
    """least, most: replicas; grace: seconds. None = it does not say. mistakes: for people, '' = none."""

    least: int | None = None
    most: int | None = None
    grace: float | None = None
    mistakes: str = ""


def role_of(annotations: Mapping[str, str]) -> Role:
    """UNSAID also for what is no role."""
    said = annotations.get(TIDE)
    if not said:
        return Role.UNSAID
    try:
        return Role(said)
    except ValueError:
        return Role.UNSAID


def training_terms(*annotations: Mapping[str, str]) -> TrainingTerms:
    """The first that say something decide: of the workload, then of a pod."""
    mistakes: list[str] = []
    least, most = (_count(name, _first(name, annotations), mistakes) for name in (LEAST, LARGEST))
    if least is not None and most is not None and least > most:
        mistakes.append(f"{LEAST} is {least} and {LARGEST} {most}: it may not be the larger; neither counts")
        least = most = None
    grace = _grace(_first(GRACE, annotations), mistakes)
    said = _first(TIDE, annotations)
    if said is not None and said not in (Role.TRAINING.value, Role.INFERENCE.value):
        mistakes.append(f"{TIDE} is {said[:40]!r}: write training or inference")
    return TrainingTerms(least, most, grace, "; ".join(mistakes))


def _first(name: str, annotations: tuple[Mapping[str, str], ...]) -> str | None:
    return next((one[name] for one in annotations if name in one), None)


def _count(name: str, text: str | None, mistakes: list[str]) -> int | None:
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) < 9 and int(text) <= _MOST_REPLICAS:
        return int(text)
    mistakes.append(f"{name} is {text[:40]!r}: write a number from 0 to {_MOST_REPLICAS}")
    return None


def _grace(text: str | None, mistakes: list[str]) -> float | None:
    if text is None:
        return None
    seconds = duration_seconds(text)
    if seconds is not None and seconds <= _LONGEST_GRACE:
        return seconds
    mistakes.append(f"{GRACE} is {text[:40]!r}: write a duration of a day at most, such as {DURATION_EXAMPLES}")
    return None
