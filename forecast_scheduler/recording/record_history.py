"""`look --record DIR`: from a kubeconfig to a history that grows, until Ctrl-C."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from base.errors import InputError
from forecast.calendar import Calendar
from forecast_scheduler.recording.kubelets import AT_ONCE, KubeletProxy, MetricsApi, choose_way
from forecast_scheduler.recording.listed_pods import ListedPods
from forecast_scheduler.recording.recorder import Recorded, Recorder, check_size, first_forecast, seconds_between
from forecast_scheduler.settings.document import Settings
from kube.client.cluster_access import ClusterAccess
from kube.client.kubernetes_client import UnreachableApiServer, check_access
from kube.client.kubernetes_source import KubernetesSource
from trainer.own_history_store import last_read
from trainer.run_lease import LeaseHeld, hold_lease
from trainer.sampling.growing_history import GrowingHistory

_FIRST_LISTS_SECONDS: Final = 60.0
_WATCHES: Final = 4


def record_history(
    settings: Settings,
    access: ClusterAccess,
    history: Path,
    say: Callable[[str], None],
    *,
    ended: threading.Event | None = None,
    clock: Callable[[], float] = time.time,
) -> None:
    """Record CPU and memory of all nodes and pods into a history directory, until KeyboardInterrupt or `ended`.

    say : a line for the user, at the beginning and every half hour
    Raises InputError: too many nodes, no right to read them, another recorder; UnreachableApiServer.
    """
    ended = ended or threading.Event()
    calendar = Calendar(settings.time_zone or "UTC", settings.holiday_country)
    api, listed = access.client(connections=AT_ONCE + _WATCHES), ListedPods()
    check_access(api)
    source = KubernetesSource(api, listed)
    source.start()
    kubelets = KubeletProxy(api, clock, ended)
    try:
        if not source.wait_synced(_FIRST_LISTS_SECONDS):
            raise UnreachableApiServer(f"the API server did not list the cluster within {_FIRST_LISTS_SECONDS:g} s")
        nodes = listed.nodes()
        check_size(len(nodes))
        metrics_api = MetricsApi(api, clock, lambda: _node_of(listed))
        way = choose_way(kubelets, metrics_api, api, [node.name for node in nodes if node.ready])
        with _lease(history):
            recording = GrowingHistory(history, settings.prometheus, calendar, keep_days=settings.train.keep_days)
            recording.resume(datetime.fromtimestamp(clock(), UTC))
            every = seconds_between(len(nodes))
            say(
                f"recording CPU and memory of {len(nodes)} nodes and {len(listed.running())} pods into {history} every "
                f"{every:g} s: {way.says}. Disk, network and log bytes are not measured. "
                "A line comes each half hour; Ctrl-C ends it."
            )
            began = last_read(history) or datetime.fromtimestamp(clock(), UTC)
            if recording.n_days < 2:
                say(
                    f"first forecast: {first_forecast(began, calendar):%Y-%m-%d %H:%M %Z}, with `forecast-scheduler "
                    f"train --history {history}`"
                )
            recorder = Recorder(way, listed, recording, ended=ended, report=lambda now: say(_line(now)), clock=clock)
            try:
                recorder.run()
            except KeyboardInterrupt:
                say(f"ended; what was recorded is in {history}")
    finally:
        ended.set()
        kubelets.close()
        source.stop()


def _line(now: Recorded) -> str:
    """Of half an hour."""
    share = f"{now.answered:,} of {now.asked:,} readings answered" if now.asked else "no node was read"
    why = f" (most often: {now.why_not})" if now.why_not else ""
    days = "1 calendar day" if now.n_days == 1 else f"{now.n_days} calendar days"
    until = "nothing new is stored" if now.until is None else f"stored until {now.until:%H:%M} UTC, on {days}"
    return f"{until}: {now.n_pods:,} pods on {now.n_nodes} nodes, {share}{why}"


def _node_of(listed: ListedPods) -> dict[tuple[str, str], str]:
    return {(one.pod.namespace, one.pod.name): one.pod.node for one in listed.running()}


@contextmanager
def _lease(history: Path) -> Iterator[None]:
    """No second recorder, and no nightly run that grows the same history. Raises InputError."""
    with ExitStack() as held:
        try:
            held.enter_context(hold_lease(str(history)))
        except LeaseHeld as error:
            raise InputError(f"{history} grows already: {error}; or give --record another directory") from error
        yield
