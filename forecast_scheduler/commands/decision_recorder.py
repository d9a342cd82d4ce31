"""The recorder of decisions as settings want it: with its log, its events, and figures for /metrics."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path

from base.periodic_task import PeriodicTask
from kube.events.event_recorder import Post
from placement.decisions.decision_log import DecisionLog, open_decision_log
from placement.decisions.decision_reports import DecisionCollector, EventSink
from placement.decisions.decision_settings import DecisionOptions
from placement.decisions.recorder import DecisionRecorder

_EXPIRE_SECONDS = 60.0


@contextmanager
def open_recorder(
    settings: DecisionOptions, post: Post | None, *, controller: str, is_shadow: bool = False
) -> Iterator[tuple[DecisionRecorder, DecisionCollector]]:
    """Record decisions while the context lasts. Raises InputError if the log cannot be written.

    post       : writes events; None = there are none
    controller : the component that decides, as events name it
    """
    with ExitStack() as stack:
        log: DecisionLog | None = None
        events: EventSink | None = None
        if settings.log is not None:
            log = open_decision_log(Path(settings.log), max_bytes=settings.max_bytes, keep=settings.keep)
            log.start()
            stack.callback(log.stop)
        if post is not None and settings.events:
            events = EventSink(
                post,
                controller=controller,
                instance=socket.gethostname(),
                rate=settings.events_per_second,
                burst=10 * settings.events_per_second,
            )
            events.start()
            stack.callback(events.stop)
        sinks = [sink for sink in (log, events) if sink is not None]
        recorder = DecisionRecorder(sinks, version=version("forecast-scheduler"))
        every = PeriodicTask("expire-decisions", _EXPIRE_SECONDS, lambda: recorder.expire(time.time()))
        every.start()
        stack.callback(every.stop)
        yield recorder, DecisionCollector(recorder, log, events, is_shadow=is_shadow)
