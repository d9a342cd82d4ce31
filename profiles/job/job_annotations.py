"""What a pod says of its run: when it has to start and to end, how long it takes, and where it may be.

    forecast-scheduler.io/latest-start: 2h                         at the latest two hours after its Job was created
    forecast-scheduler.io/deadline: "2026-11-22T06:00:00+01:00"    it is to have ended by then
    forecast-scheduler.io/expected-run: 20m
    forecast-scheduler.io/place: cluster | serverless | any

Any client may write anything here: an unreadable value is listed as a mistake, and the rest counts. A Job's own
activeDeadlineSeconds says when it is stopped, not by when its result is wanted: it bounds the run
(cluster/runs/expected.py).

Whether a pod may leave the cluster for a virtual node, decided from the pod alone. What its node selector and
affinity say of virtual nodes the filters find out.

Pods of jobs with unreadable annotations: each is reported once, as an ignored annotation is not seen otherwise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import Final

from base.periodic_task import PeriodicTask
from cluster.follower import NodesAndPodsOnly
from cluster.runs.expected import EXPECTED_RUN_ANNOTATION, LONGEST_TEXT, annotated_duration, annotated_run
from cluster.tables.changes import Change, PodChange
from cluster.tables.state import ClusterState
from kube.events.event_recorder import EventRecorder
from kube.objects.counted_pods import waits
from kube.objects.objects import ANNOTATION_PREFIX, PodInfo
from scheduler.process import Process
from scorer.scorer import Scorer
from serving.threads import Upkeep

LATEST_START_ANNOTATION: Final = ANNOTATION_PREFIX + "latest-start"
DEADLINE_ANNOTATION: Final = ANNOTATION_PREFIX + "deadline"
PLACE_ANNOTATION: Final = ANNOTATION_PREFIX + "place"


# RFC 3339, section 5.6, as Go reads it: capital letters, and never without the offset.
_RFC_3339: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_TIME_EXAMPLE: Final = "2026-11-22T06:00:00Z"

_OF_NODES: Final = frozenset({"DaemonSet", "Node"})
"""Kinds of owners whose pods are there for the sake of a node."""

_MOST_REMEMBERED: Final = 4096
_MOST_WAITING: Final = 100
_LOOK_SECONDS: Final = 1.0


class Place(Enum):
    """Where a pod may be."""

    ANY = "any"
    CLUSTER = "cluster"  # it must stay
    SERVERLESS = "serverless"  # on virtual nodes only


@dataclass(frozen=True, slots=True)
class JobTerms:
    """latest_start, deadline : unix seconds; inf = it does not say
    run_seconds               : how long it expects to run; None = it does not say
    mistakes                  : unreadable values, one sentence each
    """

    latest_start: float = math.inf
    deadline: float = math.inf
    run_seconds: float | None = None
    place: Place = Place.ANY
    mistakes: tuple[str, ...] = ()

    @property
    def is_timed(self) -> bool:
        """Whether it says by when it has to start or to end; one that does may wait until then."""
        return self.latest_start < math.inf or self.deadline < math.inf


NO_TERMS: Final = JobTerms()


@dataclass(frozen=True, slots=True)
class _Moment:
    """unix seconds, or seconds after the pod, or its Job, was created."""

    seconds: float
    is_absolute: bool

    def of(self, pod: PodInfo, since: Callable[[PodInfo], float]) -> float:
        return self.seconds if self.is_absolute else since(pod) + self.seconds


@dataclass(frozen=True, slots=True)
class _Said:
    """What the four texts say of any pod that carries them; None = nothing."""

    latest_start: _Moment | None
    deadline: _Moment | None
    run_seconds: float | None
    place: Place
    mistakes: tuple[str, ...]


def _creation(pod: PodInfo) -> float:
    return pod.created


def terms_of(pod: PodInfo, since: Callable[[PodInfo], float] = _creation) -> JobTerms:
    """Never an exception. NO_TERMS where the pod says nothing of this.

    since : unix seconds from which durations count; where times matter it is DatedTerms.since (due_times.py)
    """
    annotations = pod.annotations
    if not annotations:
        return NO_TERMS
    texts = (
        annotations.get(LATEST_START_ANNOTATION),
        annotations.get(DEADLINE_ANNOTATION),
        annotations.get(EXPECTED_RUN_ANNOTATION),
        annotations.get(PLACE_ANNOTATION),
    )
    if texts == _NOTHING_SAID:
        return NO_TERMS
    said = _said(*map(_short, texts))
    return JobTerms(
        latest_start=math.inf if said.latest_start is None else said.latest_start.of(pod, since),
        deadline=math.inf if said.deadline is None else said.deadline.of(pod, since),
        run_seconds=said.run_seconds,
        place=said.place,
        mistakes=said.mistakes,
    )


_NOTHING_SAID: Final = (None, None, None, None)


def _short(text: str | None) -> str | None:
    # Longer texts are refused in any case: no client must fill the cache with them.
    return text[: LONGEST_TEXT + 1] if text else text


@lru_cache(maxsize=8192)  # pods of one template say the same
def _said(latest_start: str | None, deadline: str | None, expected_run: str | None, place: str | None) -> _Said:
    mistakes: list[str] = []
    return _Said(
        latest_start=_moment(LATEST_START_ANNOTATION, latest_start, mistakes),
        deadline=_moment(DEADLINE_ANNOTATION, deadline, mistakes),
        run_seconds=_run(expected_run, mistakes),
        place=_place(place, mistakes),
        mistakes=tuple(mistakes),
    )


def _moment(key: str, text: str | None, mistakes: list[str]) -> _Moment | None:
    if text is None:
        return None
    if (seconds := annotated_duration(text)) is not None:
        return _Moment(seconds, is_absolute=False)
    if len(text) <= LONGEST_TEXT and _RFC_3339.fullmatch(text):
        try:
            return _Moment(datetime.fromisoformat(text).timestamp(), is_absolute=True)
        except (ValueError, OverflowError):
            pass  # there is no such day or hour
    mistakes.append(
        f"{key} is {_shown(text)}: write a time with its offset, such as {_TIME_EXAMPLE}, or a duration of at most a "
        "year after the creation of its Job, such as 2h"
    )
    return None


def _run(text: str | None, mistakes: list[str]) -> float | None:
    if text is None:
        return None
    if (seconds := annotated_run(text)) is not None:
        return seconds
    mistakes.append(
        f"{EXPECTED_RUN_ANNOTATION} is {_shown(text)}: write a duration of more than nothing and at most a year, "
        "such as 20m"
    )
    return None


def _place(text: str | None, mistakes: list[str]) -> Place:
    if text is None:
        return Place.ANY
    try:
        return Place(text)
    except ValueError:
        known = ", ".join(place.value for place in Place)
        mistakes.append(f"{PLACE_ANNOTATION} is {_shown(text)}: write one of {known}")
        return Place.ANY


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "...")


def may_leave(pod: PodInfo, terms: JobTerms) -> str:
    """Return why the pod has to stay, to be read after "the pod"; '' = it may leave.

    Volumes: config maps, secrets, empty directories, projections and images come along; claims, disks, paths of the
    host and all others do not. If it needs data nearby, its owner says so with the annotation place: cluster.
    """
    if terms.place is Place.CLUSTER:
        return "is to stay in the cluster"
    if pod.owner.kind in _OF_NODES:
        return "belongs to a node"
    if pod.host_ports:
        return "takes ports of its node"
    if pod.volumes:
        return "has volumes that stay"
    if pod.uses_host:
        return "uses its node or volumes that stay"
    return ""


class UnreadTerms(NodesAndPodsOnly):
    """Implements cluster.follower.Follower; attached for no kinds. Under the lock of the tables.

    is_job : whether the profile places the pod
    """

    def __init__(self, state: ClusterState, is_job: Callable[[PodInfo], bool]) -> None:
        self._state, self._is_job = state, is_job
        self._told: dict[tuple[str, tuple[str, ...]], None] = {}  # by owner: pods of one template say the same
        self._waiting: list[tuple[PodInfo, str]] = []

    def take(self) -> Sequence[tuple[PodInfo, str]]:
        """Pods, and what is wrong with them, since the last time; at most a hundred."""
        taken, self._waiting = self._waiting, []
        return taken

    def apply(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if isinstance(change, PodChange) and change.pod.uid in self._state.pods:
                self._look_at(change.pod)

    def rebuild(self) -> None:
        for pod in self._state.pods.values():
            self._look_at(pod)

    def _look_at(self, pod: PodInfo) -> None:
        if not pod.annotations or not waits(pod) or not self._is_job(pod):
            return
        mistakes = terms_of(pod).mistakes
        key = (pod.owner_uid or pod.uid, mistakes)
        if not mistakes or key in self._told or len(self._waiting) >= _MOST_WAITING:
            return
        if len(self._told) >= _MOST_REMEMBERED:
            del self._told[next(iter(self._told))]
        self._told[key] = None
        self._waiting.append((pod, "; ".join(mistakes)))


def unread_upkeep(unread: UnreadTerms, scorer: Scorer, process: Process) -> Upkeep:
    """Return the thread that writes an event on each such pod."""
    events = EventRecorder(process.post, what="queues", instance=process.instance)

    def look() -> None:
        with scorer.tables.reading():
            taken = unread.take()
        if process.leads():
            for pod, mistakes in taken:
                events.warn(pod, "UnreadAnnotation", mistakes)

    look_again = PeriodicTask("unread-annotations", _LOOK_SECONDS, look, after=process.is_read)
    return Upkeep((events, look_again))
