"""What keeps a scorer up to date while it serves: threads that let time pass, measure, and look for models.

Each job has a thread of its own, so that a Prometheus that hangs holds up nothing but the next measurement. A job that
fails is logged and done again; none of them ever ends by itself.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Self

from base.errors import InputError
from base.periodic_task import PeriodicTask
from cluster.model_watch import ModelWatch
from scorer.scorer import Scorer
from serving.allocator import give_back

logger = logging.getLogger(__name__)

_TICK_SECONDS = 1.0
_LARGEST_SHARE = 0.05
"""Of the time that computing may take up: on a large cluster the overview is made less often than asked for."""


class Background:
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
        ]
        if options.self_check_every > 0:
            self._jobs.append(
                PeriodicTask(
                    "self-check", options.self_check_every, scorer.self_check, after=lambda: scorer.tables.synced
                )
            )
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
