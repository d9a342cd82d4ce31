"""How long a pod says that it runs: the annotation `forecast-scheduler.io/expected-run` of its template."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from base.durations import duration_seconds
from cluster.runs.run_times import SHORTEST_RUN
from forecast.run_length import LONGEST_RUN
from kube.objects.objects import ANNOTATION_PREFIX

EXPECTED_RUN_ANNOTATION: Final = ANNOTATION_PREFIX + "expected-run"

LONGEST_TEXT: Final = 64
"""Characters. Any client may write annotations: longer texts are refused before they are parsed or kept."""


def said_run(annotations: Mapping[str, str]) -> float | None:
    """Seconds that a pod of these annotations expects to run; None = they do not say, or not so that it can be read."""
    text = annotations.get(EXPECTED_RUN_ANNOTATION)
    return None if text is None else annotated_run(text[: LONGEST_TEXT + 1])


@lru_cache(maxsize=8192)  # pods of one template say the same
def annotated_run(text: str) -> float | None:
    """Seconds of a run, at least SHORTEST_RUN; None = the text is no duration above 0."""
    seconds = annotated_duration(text)
    return max(seconds, SHORTEST_RUN) if seconds is not None and seconds > 0 else None


def annotated_duration(text: str) -> float | None:
    """Seconds of a duration of at most a year; None = the text is none."""
    seconds = duration_seconds(text) if len(text) <= LONGEST_TEXT else None
    return seconds if seconds is not None and seconds <= LONGEST_RUN else None
