"""Decisions as events: what they say, how many, and that nothing depends on their being posted."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
import urllib3

from kube.events.event_recorder import EventFigures
from placement.decisions.decision import note_of
from placement.decisions.decision_reports import EventSink
from tests.placement.decisions.made_up import AT, advice, binding, decision, expecting

PEAK = "expected peak 61 % of cpu at 22:00, upper bound (95 %) 73 %"
MODEL = "model 2026-09-20T02-00, metrics 20 s old"
NOTHING_KNOWN = {"peak": expecting(None), "model_version": None, "metrics_age_seconds": None, "reasons": ("no model",)}
LATE = "the advice came too late and was not used"


class Server:
    """Remembers what is posted; answers with a status or raises."""

    def __init__(self, answer: int | Exception = 201) -> None:
        self.answer, self.posted = answer, list[tuple[str, dict[str, object]]]()

    def __call__(self, path: str, body: bytes) -> int:
        self.posted.append((path, msgspec.json.decode(body)))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("node", "changes", "note"),
    [
        ("n1", {}, f"node n1 of 3: {PEAK}; 3 points ahead of n7; {MODEL}"),
        ("n2", {}, f"node n2, rank 3 of 3, n1 was advised: {PEAK} there; 5 points ahead of n2; {MODEL}"),
        ("n1", NOTHING_KNOWN, "node n1 of 3: 3 points ahead of n7; no model; no model"),
        (
            "n2",
            {"is_late": True},
            f"node n2, rank 3 of 3, n1 was advised: {LATE}; {PEAK} there; 5 points ahead of n2; {MODEL}",
        ),
        ("new", {}, f"node new of 3, n1 was advised: {PEAK} there; {MODEL}"),
    ],
)
def test_the_note(node: str, changes: dict[str, Any], note: str) -> None:
    assert note_of(decision({"n1": 6, "n7": 3, "n2": 1}, node, **changes)) == note


def test_the_note_says_why_a_pod_is_elsewhere_instead_of_by_how_much_the_other_was_better() -> None:
    why = "NodeResourcesFit: Insufficient cpu"
    note = note_of(decision({"n1": 6, "n7": 3, "n2": 1}, "n2", because=why))
    assert note == f"node n2, rank 3 of 3, n1 was advised: {PEAK} there; not there: {why}; {MODEL}"
    assert "not there" not in note_of(decision({"n1": 6, "n7": 3}, "n1", because=why))


def test_the_event_keeps_within_what_the_api_server_lets_through() -> None:
    server = Server()
    sink = EventSink(server, controller="us", instance="x" * 300)
    sink.start()
    reasons = tuple(f"because of ä {n}" for n in range(200))
    sink.take(binding(advice({"n1": 1}, pod=f"shop/{'a' * 230}-{'b' * 22}", reasons=reasons), "n1"))
    sink.stop()
    event: dict[str, Any] = server.posted[0][1]
    assert len(event["note"].encode()) <= 1024 and len(event["note"].encode()) > 1000
    assert len(event["reportingInstance"]) == 128
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", event["metadata"]["name"])
    assert len(event["metadata"]["name"]) <= 253
    assert event["eventTime"] == "2026-09-21T14:13:21.000000Z"


def test_events_are_posted_to_the_pods_namespace_and_limited() -> None:
    server = Server()
    sink = EventSink(server, controller="us", instance="one", rate=5, burst=3)
    sink.start()
    for number in range(10):
        sink.take(binding(advice({"n1": 1}, uid=f"uid-{number}"), "n1", at=AT))
    sink.take(binding(advice({"n1": 1}, uid="later"), "n1", at=AT + 0.2))
    sink.stop()
    assert [path for path, _ in server.posted] == ["/apis/events.k8s.io/v1/namespaces/shop/events"] * 4
    assert sink.figures == EventFigures(posted=4, limited=7, dropped=0, failed=0)


def test_a_namespace_that_is_a_path_leads_nowhere_else() -> None:
    server = Server()
    sink = EventSink(server, controller="us", instance="one")
    sink.start()
    sink.take(binding(advice({"n1": 1}, pod="..%2f?x#/cart"), "n1"))
    sink.stop()
    assert server.posted[0][0] == "/apis/events.k8s.io/v1/namespaces/..%252f%3Fx%23/events"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (403, "grant create on events.events.k8s.io"),
        (500, "answered 500"),
        (urllib3.exceptions.ProtocolError("cut"), "ProtocolError"),
        (OSError("no route"), "no route"),
    ],
)
def test_an_api_server_that_fails_costs_events_only_and_is_told_once(
    answer: int | Exception, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(answer)
    sink = EventSink(server, controller="us", instance="one")
    sink.start()
    for number in range(4):
        sink.take(binding(advice({"n1": 1}, uid=f"uid-{number}"), "n1"))
    sink.stop()
    assert sink.figures.failed == 4
    (said,) = [record for record in caplog.records if record.message == "events of decisions are not posted"]
    assert why in str(vars(said)["why"])
