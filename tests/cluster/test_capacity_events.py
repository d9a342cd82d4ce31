"""Events about capacity annotations that cannot be read."""

from __future__ import annotations

from typing import Any

import msgspec

from cluster.predicted.node_capacity import CAPACITY_ANNOTATION
from kube.decoding.decoding import Kind
from scorer.background import CapacityEvents
from tests.scorer.live_cluster import node
from tests.scorer.scorer_at import LiveScorer


class Told:
    """Looks at a scorer, and keeps what is posted."""

    def __init__(self) -> None:
        self.tested, self.leads = LiveScorer(), True
        self.posted: list[tuple[str, dict[str, Any]]] = []
        self.events = CapacityEvents(
            self.tested.scorer,
            self._post,
            controller="forecast-scheduler.io/extender",
            instance="us",
            may_write=lambda: self.leads,
            clock=lambda: 1e9,
        )
        self.events._recorder.start()

    def _post(self, path: str, body: bytes) -> int:
        self.posted.append((path, msgspec.json.decode(body)))
        return 201

    def annotate(self, text: str) -> None:
        self.tested.scorer.tables.put(Kind.NODES, node("node-3", annotations={CAPACITY_ANNOTATION: text}))
        self.events.look()


def test_a_mistake_is_told_once_on_its_node_by_the_replica_that_leads() -> None:
    told = Told()
    told.annotate('{"log": 7, "dsk": 1}')
    told.events.look()
    told.annotate('{"log": 7}')
    told.annotate('{"log": 7, "dsk": 1}')  # again, after it was mended
    told.events._recorder.stop()
    assert len(told.posted) == 2
    path, event = told.posted[0]
    assert path == "/apis/events.k8s.io/v1/namespaces/default/events"
    assert event["regarding"] == {"apiVersion": "v1", "kind": "Node", "name": "node-3", "uid": "node-3"}
    assert (event["type"], event["reason"]) == ("Warning", "UnreadAnnotation")
    assert "'dsk'" in event["note"] and "other entries are in use" in event["note"]
    told = Told()
    told.leads = False
    told.annotate("[")
    told.leads = True
    told.events.look()
    told.events._recorder.stop()
    assert len(told.posted) == 1
