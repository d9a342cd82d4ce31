"""Bodies that no kube-scheduler would send, over a real socket: an answer that says so, never an error of ours, and
nothing asked of the extender or of the API server on behalf of what was not understood."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import httpx
import pytest

from extender.answer_settings import ExtenderServiceOptions
from extender.service.extender_app import create_app
from tests.extender.protocol.recorded_requests import recorded
from tests.extender.service.questions import nodes_question
from tests.extender.service.simple_extender import SimpleBinder, SimpleExtender
from tests.serving.broken_bodies import broken
from tests.serving.served import served

BODIES = {
    "filter": recorded("names-filter"),
    "prioritize": recorded("nodes-filter"),
    "preempt": recorded("names-preempt"),
    "bind": recorded("bind"),
}
JSON_TYPE = {"Content-Type": "application/json"}


@pytest.fixture
def url(extender: SimpleExtender, binder: SimpleBinder) -> Iterator[str]:
    with served(create_app(extender, ExtenderServiceOptions(deadline=20), binder=binder)) as url:
        yield url


def _break(url: str, extender: SimpleExtender, binder: SimpleBinder, count: int) -> None:
    rng, seen = random.Random(5), dict.fromkeys(BODIES, 0)
    with httpx.Client(headers=JSON_TYPE) as client:
        for number in range(count):
            verb = rng.choice(list(BODIES))
            body = broken(BODIES[verb], rng)
            before = len(extender.asked) + len(binder.bound)
            answer = client.post(f"{url}/{verb}", content=body)
            assert answer.status_code in (200, 400), (number, body, answer.text)
            found = answer.json()
            refused = isinstance(found, dict) and bool(found.get("Error"))
            assert refused or answer.status_code == 200
            seen[verb] += refused
            # Whoever is refused was not asked about; whoever is answered was, once.
            assert len(extender.asked) + len(binder.bound) - before == (0 if refused else 1), (number, body)
        assert all(count > 0 for count in seen.values()), seen
        assert client.post(f"{url}/filter", json=nodes_question("a")).json()["NodeNames"] == ["a"]
        assert 'outcome="failed",verb="filter"} 0.0' in client.get(f"{url}/metrics").text


def test_broken_bodies_are_refused(url: str, extender: SimpleExtender, binder: SimpleBinder) -> None:
    _break(url, extender, binder, 600)


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"name": "p", "ownerReferences": None, "annotations": None}},
        {"metadata": {"name": "p", "annotations": {"forecast-scheduler.io/virtual-request": "{not json"}}},
        {"metadata": {"name": "p", "labels": {"a" * 5000: "b" * 5000}}},
        {"spec": {"containers": [{"name": "m", "resources": {"requests": {"cpu": "-5", "memory": "9" * 300}}}]}},
        {"spec": {"containers": [{"name": "m", "resources": {"requests": {"cpu": "1e400", "x": "NaN"}}}]}},
        {"spec": {"containers": []}},
        {"spec": None, "status": None},
    ],
)
def test_odd_pods_get_a_clear_answer(url: str, change: dict[str, object]) -> None:
    question = nodes_question("node-1", "hot-1", pod={"metadata": {"name": "p"}, "spec": {"containers": []}} | change)
    answer = httpx.post(f"{url}/filter", content=json.dumps(question), headers=JSON_TYPE)
    assert answer.status_code == 200
    assert answer.json()["NodeNames"] == ["node-1"] or "Pod p cannot be read" in answer.json()["Error"]
    answer = httpx.post(f"{url}/prioritize", content=json.dumps(question), headers=JSON_TYPE)
    assert answer.json() == [] or "Pod p cannot be read" in answer.json()["Error"]
