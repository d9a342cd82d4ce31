"""What runs beside a scorer while it serves: threads that let time pass, measure, look for models, and report unread
capacities of nodes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final, Self

from base.errors import InputError
from base.periodic_task import PeriodicTask
from cluster.model_watch import ModelWatch
from cluster.predicted.node_capacity import CAPACITY_ANNOTATION, UnreadCapacity
from kube.events.api_event import node_reference
from kube.events.event_recorder import EventRecorder, Post
from scorer.scorer import Scorer
from serving.freed_memory import give_back

logger = logging.getLogger(__name__)

_TICK_SECONDS = 1.0

_LARGEST_SHARE = 0.05
"""Of the time that computing may take up: on a large cluster the overview is made less often than asked for."""

_LOOK_SECONDS: Final = 10.0
_MOST_WAITING: Final = 200


class ScorerBackground:
    """The jobs of one scorer. `with Background(...)`: they run inside."""

    def __init__(self, scorer: Scorer, models: ModelWatch | None, *, clock: Callable[[], float] = time.time) -> None:
        """models: None = there is no registry to look at; clock: unix seconds."""
        options = scorer.options
        self._scorer, self._models, self._clock = scorer, models, clock
        self._jobs = [
            PeriodicTask("tick", _TICK_SECONDS, scorer.tables.tick),
            PeriodicTask("rebuild", _TICK_SECONDS, scorer.tables.rebuild_if_needed),
            PeriodicTask("usage", options.usage_every, scorer.tables.measure),
            PeriodicTask(
                "scale-out", options.scale_out_every, scorer.tables.share_out_scale_out, largest_share=_LARGEST_SHARE
            ),
            PeriodicTask(
                "overview", options.overview_every, scorer.tables.refresh_overview, largest_share=_LARGEST_SHARE
            ),
            PeriodicTask("self-check", options.self_check_every, scorer.self_check, after=lambda: scorer.tables.synced),
        ]
        if models is not None:
            scorer.tables.expect_model()
            # A model put in place before the cluster is read would have to follow every pod of it one by one.
            self._jobs.append(
                PeriodicTask("models", options.model_every, self.look_for_model, after=lambda: scorer.tables.synced)
            )

    def __enter__(self) -> Self:
        for job in self._jobs:
            job.start()
        return self

    def __exit__(self, *error: object) -> None:
        for job in self._jobs:
            job.stop(timeout=0)  # stop all before waiting for one
        for job in self._jobs:
            job.stop()

    def wait_synced(self, seconds: float) -> None:
        """Wait until the cluster has been read. Raises InputError after `seconds`."""
        deadline = time.monotonic() + seconds
        while not self._scorer.tables.synced:
            if time.monotonic() > deadline:
                sources = "; ".join(f"{name}: {words}" for name, words in self._scorer.status().sources.items())
                raise InputError(
                    f"the cluster could not be read within {seconds:.0f} s ({sources}): is its API server up?"
                )
            time.sleep(0.05)

    def look_for_model(self) -> None:
        """Use a newly published model, or remember why not."""
        assert self._models is not None
        loaded = self._models.poll(self._clock())
        if loaded is not None:
            try:
                self._scorer.tables.install(loaded)
            except Exception as error:  # whatever is wrong with it, the one before is still in place
                logger.exception("a model could not be put in place", extra={"version": loaded.version})
                self._models.give_back(loaded, f"{type(error).__name__}: {error}", self._clock())
                loaded = None
        self._scorer.tables.refuse_model(self._models.refused)
        if loaded is not None:
            self._scorer.tables.refresh_overview()
            give_back()  # what the cluster's first listing, or the model before, has left


class CapacityEvents:
    """Reports each mistake once, for as long as the annotation stays; posts in a thread of its own."""

    def __init__(
        self,
        scorer: Scorer,
        post: Post,
        *,
        controller: str,
        instance: str,
        may_write: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        controller : that reports, such as forecast-scheduler.io/extender
        instance   : name of this replica, as events show it
        may_write  : whether this replica leads; once it does, it reports what is still wrong
        clock      : unix seconds
        """
        self._scorer, self._may_write = scorer, may_write
        self._told: frozenset[UnreadCapacity] = frozenset()
        self._recorder = EventRecorder(
            post,
            what="capacities",
            instance=instance,
            controller=controller,
            action="ReadingAnnotations",
            max_waiting=_MOST_WAITING,
            clock=clock,
        )
        self._every = PeriodicTask("capacity-annotations", _LOOK_SECONDS, self.look)

    def start(self) -> None:
        """Begin to look and to post. Once only."""
        self._recorder.start()
        self._every.start()

    def stop(self) -> None:
        """End; what waits is posted if that takes no longer than two seconds."""
        self._every.stop()
        self._recorder.stop()

    def look(self) -> None:
        """Post an event for each mistake that was not there at the look before."""
        if not self._may_write():
            return
        with self._scorer.tables.reading() as cluster:
            unread = cluster.unread_capacities()
        for one in unread:
            if one not in self._told:
                note = f"{CAPACITY_ANNOTATION}: {'; '.join(one.mistakes)}; its other entries are in use"
                self._recorder.record(node_reference(one.node), "UnreadAnnotation", note)
        self._told = frozenset(unread)
