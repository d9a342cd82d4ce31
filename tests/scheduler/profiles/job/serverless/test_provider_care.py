"""The threads that look after providers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson

from placement.virtual_nodes.options import Provider, ServerlessOptions
from scheduler.profiles.job.serverless.plugins import ProviderCare, serverless_plugins
from scheduler.reporting.pod_events import PodEvents
from scorer.assuming_cluster import AssumingCluster
from scorer.options import ScorerOptions
from tests.scheduler.profiles.job.serverless.providers_world import OURS, job_pod, provider_node
from tests.scheduler.profiles.job.serverless.test_start_watch import MadeUpSession


def test_a_pod_that_does_not_start_is_taken_back_and_told_of() -> None:
    cluster, lock = AssumingCluster(ScorerOptions(), now=time.time()), threading.RLock()
    options = ServerlessOptions(providers=(Provider(name="aci", start_timeout=0.001),))
    plugins = serverless_plugins(
        cluster.state, options, is_ours=lambda pod: True, is_assumed=cluster.assumed.__contains__
    )
    cluster.listeners += [plugins.tables.apply, plugins.failed_nodes.apply]

    @contextmanager
    def locked() -> Iterator[None]:
        with lock:
            yield

    posted: list[dict[str, Any]] = []
    is_posted = threading.Event()

    def post(path: str, body: bytes) -> int:
        posted.append(orjson.loads(body))
        is_posted.set()
        return 201

    session, is_read = MadeUpSession(), threading.Event()
    events = PodEvents(post, instance="one")
    care = ProviderCare(plugins, session, [OURS], locked=locked, tell=events.tell, after=is_read.is_set)
    events.start()
    care.start()
    try:
        with locked():
            cluster.put(provider_node("v", "aci"))
            cluster.put(job_pod("p", node="v", owner_uid="u"))
        is_read.set()
        assert is_posted.wait(60)
    finally:
        care.stop()
        events.stop()
    assert session.deleted[0] == "p"
    event = posted[0]
    assert (event["reason"], event["type"], event["regarding"]["name"]) == ("TakenBack", "Warning", "p")
    assert event["note"].endswith("the provider aci has not started it in time")
