from __future__ import annotations

import json

import pytest

from extender.answer_settings import ExtenderServiceOptions, ExtenderServing
from extender.service.extender_app import create_app
from kube.binding.binding_steps import BindingFailed
from testing.app_client import AppClient
from tests.extender.protocol.recorded_requests import recorded
from tests.extender.service.questions import BINDING, POD, count_of, nodes_question, victims_question
from tests.extender.service.simple_extender import SimpleBinder, SimpleExtender

JSON_TYPE = {"Content-Type": "application/json"}


def test_filter_prioritize_and_preempt_answer_as_the_protocol_says(client: AppClient, extender: SimpleExtender) -> None:
    answer = client.post("/filter", json=nodes_question("a", "hot-1", "gpu-1", "b"))
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/json"
    assert answer.json() == {
        "NodeNames": ["a", "b"],
        "Nodes": None,
        "FailedNodes": {"hot-1": "predicted peak too high"},
        "FailedAndUnresolvableNodes": {"gpu-1": "kept for pods with GPUs"},
        "Error": "",
    }
    assert extender.asked == [("filter", "shop/cart-1")]
    answer = client.post("/prioritize", json=nodes_question("good", "a", "bad"))
    assert answer.status_code == 200
    assert answer.json() == [{"Host": "good", "Score": 10}, {"Host": "bad", "Score": -10}]
    answer = client.post("/preempt", json=victims_question(a=["u1", "u2"], gpu=["u3"], b=[]))
    assert answer.status_code == 200
    assert answer.json() == {
        "NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "u1"}, {"UID": "u2"}], "NumPDBViolations": 0}}
    }


def test_what_kube_scheduler_sent_is_answered(client: AppClient, extender: SimpleExtender) -> None:
    def post(path: str, name: str) -> object:
        answer = client.post(path, content=recorded(name), headers=JSON_TYPE)
        assert answer.status_code == 200
        return answer.json()

    assert post("/filter", "names-filter")["NodeNames"] == ["node-1", "node-2"]  # type: ignore[index]
    whole = post("/filter", "nodes-filter")
    assert whole["Nodes"]["items"] == json.loads(recorded("nodes-filter"))["Nodes"]["items"]  # type: ignore[index]
    assert post("/prioritize", "names-filter") == []
    assert post("/prioritize", "nodes-filter") == []
    meta = json.loads(recorded("names-preempt"))["NodeNameToMetaVictims"]
    assert post("/preempt", "names-preempt") == {"NodeNameToMetaVictims": meta}
    assert set(post("/preempt", "nodes-preempt")["NodeNameToMetaVictims"]) == {"node-1", "node-2"}  # type: ignore[index]
    assert post("/bind", "bind") == {"Error": ""}
    assert len(extender.asked) == 6


def test_a_pod_that_cannot_be_read_is_an_error_in_the_protocols_own_terms(
    client: AppClient, extender: SimpleExtender
) -> None:
    question = nodes_question("a", pod={"metadata": {"name": "p"}, "spec": {"containers": "none"}})
    answer = client.post("/filter", json=question)
    assert answer.status_code == 200
    assert answer.json()["NodeNames"] is None and "Pod cannot be read" in answer.json()["Error"]
    for path in ("/prioritize", "/preempt"):  # their replies have no place for an error
        answer = client.post(path, json=question)
        assert answer.status_code == 400 and "Pod cannot be read" in answer.json()["Error"]
    assert extender.asked == []
    assert count_of(client, 'forecast_extender_requests_total{outcome="refused",verb="filter"}') == 1


def test_a_request_without_nodes_says_what_to_configure(client: AppClient) -> None:
    answer = client.post("/filter", json={"Pod": POD})
    assert answer.status_code == 200 and "nodeCacheCapable: true" in answer.json()["Error"]
    answer = client.post("/prioritize", json={"Pod": POD})
    assert answer.status_code == 400 and "nodeCacheCapable: true" in answer.json()["Error"]


@pytest.mark.parametrize("verb", ["filter", "prioritize", "preempt", "bind"])
def test_a_malformed_request_is_status_400_with_an_error(client: AppClient, verb: str) -> None:
    answer = client.post(f"/{verb}", content=b'{"Pod": ', headers=JSON_TYPE)
    assert answer.status_code == 400 and "not JSON" in answer.json()["Error"]
    assert count_of(client, f'forecast_extender_requests_total{{outcome="malformed",verb="{verb}"}}') == 1


def test_a_mistake_of_ours_makes_no_pod_unschedulable(
    client: AppClient, extender: SimpleExtender, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise KeyError("a mistake")

    extender.fail = fail
    answer = client.post("/filter", json=nodes_question("a", "hot-1"))
    assert answer.status_code == 200
    assert answer.json()["NodeNames"] == ["a", "hot-1"] and not answer.json()["FailedNodes"]
    assert client.post("/prioritize", json=nodes_question("good")).json() == []
    kept = client.post("/preempt", json=victims_question(a=["u1"], gpu=["u2"], b=[])).json()
    assert set(kept["NodeNameToMetaVictims"]) == {"a", "gpu"}
    for verb in ("filter", "prioritize", "preempt"):
        assert count_of(client, f'forecast_extender_requests_total{{outcome="failed",verb="{verb}"}}') == 1
    assert caplog.text.count("a mistake") >= 3  # with where it happened
    before = len(caplog.records)
    client.post("/filter", json=nodes_question("a"))
    assert len(caplog.records) == before  # the same again is counted, not told


def test_before_the_cluster_is_read_answers_are_neutral(client: AppClient, extender: SimpleExtender) -> None:
    extender.ready = False
    assert client.post("/filter", json=nodes_question("hot-1")).json()["NodeNames"] == ["hot-1"]
    assert client.post("/prioritize", json=nodes_question("good")).json() == []
    assert extender.asked == []
    assert client.get("/readyz").status_code == 503
    extender.ready = True
    assert client.post("/filter", json=nodes_question("hot-1")).json()["NodeNames"] == []
    extender.ready = False  # once ready, always ready: the degradation ladder takes over
    assert client.post("/filter", json=nodes_question("hot-1")).json()["NodeNames"] == []
    assert count_of(client, 'forecast_extender_requests_total{outcome="not_ready",verb="filter"}') == 1


def test_a_binding_says_why_it_fails_and_works_once_switched_on(
    client: AppClient, binder: SimpleBinder, extender: SimpleExtender
) -> None:
    def refuse() -> None:
        raise BindingFailed("the pod is gone")

    def break_down() -> None:
        raise KeyError("inside")

    for fail, says in ((refuse, "the pod is gone"), (break_down, "an error inside the extender")):
        binder.fail = fail
        answer = client.post("/bind", json=BINDING)
        assert answer.status_code == 200 and says in answer.json()["Error"]
    answer = client.post("/bind", json=BINDING | {"PodUID": ""})
    assert answer.status_code == 200 and "PodUID" in answer.json()["Error"]
    assert binder.bound == []
    with AppClient(create_app(extender)) as without:
        answer = without.post("/bind", json=BINDING)
        assert answer.status_code == 200 and "remove bindVerb" in answer.json()["Error"]
    binder.fail = lambda: None
    # The decision was made already; only the API server is needed.
    extender.ready = False
    assert client.post("/bind", json=BINDING).json() == {"Error": ""}


def test_a_body_is_refused_beyond_the_limit_or_answered_where_that_is_raised(extender: SimpleExtender) -> None:
    with AppClient(create_app(extender, ExtenderServiceOptions(serving=ExtenderServing(max_body_bytes=100)))) as client:
        answer = client.post("/filter", content=b" " * 101, headers=JSON_TYPE)
        assert answer.status_code == 413 and "larger than 100 bytes" in answer.json()["Error"]
        assert client.post("/filter", content=b" " * 100, headers=JSON_TYPE).status_code == 400
    # kube-scheduler sends 15 MB where nodeCacheCapable is false.
    labels = {f"example.org/label-{i}": "x" * 40 for i in range(45)}
    items = [{"metadata": {"name": f"node-{i}", "labels": labels}} for i in range(4500)]
    question = nodes_question() | {"NodeNames": None, "Nodes": {"items": items}}
    with AppClient(
        create_app(extender, ExtenderServiceOptions(serving=ExtenderServing(max_body_bytes=16 * 2**20), deadline=10))
    ) as client:
        answer = client.post("/filter", json=question)
    assert answer.status_code == 200 and len(answer.json()["Nodes"]["items"]) == 4500
    assert answer.json()["Nodes"]["items"][7] == items[7]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/filter", 405), ("POST", "/healthz", 405), ("POST", "/nothing", 404), ("GET", "/docs", 404)],
)
def test_wrong_paths_and_methods_say_what_is_right(client: AppClient, method: str, path: str, status: int) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status and "/openapi.json" in answer.json()["Error"]
