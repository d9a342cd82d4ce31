from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.extender_api import VictimsByUid
from extender.protocol.requests import (
    MalformedRequest,
    Unusable,
    decode_asked,
    decode_binding,
    decode_preemption,
    read_pod,
)
from kube.binding.binding_steps import BindingRequest
from tests.extender.protocol.recorded_requests import recorded

DECODERS = [decode_asked, decode_preemption, decode_binding]
POD = {"metadata": {"name": "cart-1"}, "spec": {"containers": [{"name": "main"}]}}


def _bytes(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def test_what_kube_scheduler_sends_is_read_in_either_case() -> None:
    asked = decode_asked(recorded("names-filter"))
    assert asked.nodes == ["node-1", "node-2"] and asked.items is None
    pod = read_pod(asked.pod)
    assert (pod.namespace, pod.name, pod.labels) == ("default", "cart-1", {"app": "cart"})
    assert pod.uid == "771da2e3-4259-475f-bd43-d1505e1a5175" and pod.requests["cpu"] == 0.1
    sent = json.loads(recorded("nodes-preempt"))["NodeNameToVictims"]
    uids = {node: VictimsByUid(tuple(p["metadata"]["uid"] for p in of["Pods"])) for node, of in sent.items()}
    assert decode_preemption(recorded("nodes-preempt")).victims == uids and len(uids) == 2
    uid = "771da2e3-4259-475f-bd43-d1505e1a5175"
    assert decode_binding(recorded("bind")) == BindingRequest("default", "cart-1", uid, "node-1")
    assert decode_asked(_bytes(pod=POD, nodes=None, nodeNames=["a", "b"])).nodes == ["a", "b"]
    victims = {"a": {"Pods": [{"UID": "u"}], "NumPDBViolations": 3}}
    assert decode_preemption(_bytes(pod=POD, nodeNameToMetaVictims=victims)).victims == {"a": VictimsByUid(("u",), 3)}
    binding = _bytes(podName="p", podNamespace="n", podUID="u", node="a")
    assert decode_binding(binding) == BindingRequest("n", "p", "u", "a")


@pytest.mark.parametrize(
    "body",
    [
        _bytes(Pod=POD, NodeNames=[]),  # names of no nodes
        _bytes(Pod=POD, Nodes={"metadata": {}, "items": None}),  # a list that Go never made
        _bytes(Pod=POD, Nodes={}, NodeNames=None, Later={"a": [1]}),  # and a key of a later version
    ],
)
def test_no_nodes_are_no_mistake(body: bytes) -> None:
    assert list(decode_asked(body).nodes) == []


@pytest.mark.parametrize(
    "body",
    [
        _bytes(Pod=POD),
        _bytes(Pod=POD, NodeNameToVictims=None, NodeNameToMetaVictims=None),
        _bytes(Pod=POD, NodeNameToMetaVictims={}),
        _bytes(Pod=POD, NodeNameToMetaVictims={"a": None}),
    ],
)
def test_no_victims_are_no_mistake(body: bytes) -> None:
    assert decode_preemption(body).victims == {}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (_bytes(NodeNames=["a"]), "no Pod"),
        (_bytes(Pod=None, NodeNames=["a"]), "no Pod"),
        (_bytes(Pod=POD), "nodeCacheCapable: true"),
        (_bytes(Pod=POD, Nodes=None, NodeNames=None), "nodeCacheCapable: true"),
    ],
)
def test_what_cannot_be_answered_says_what_is_missing(body: bytes, says: str) -> None:
    with pytest.raises(Unusable, match=says):
        decode_asked(body)


@pytest.mark.parametrize(
    "pod",
    [
        5,
        "pod",
        [],
        {},
        {"metadata": {}},
        {"metadata": {"name": "x/../y"}},
        {"metadata": {"name": "p"}, "kind": "Deployment"},
        {"metadata": {"name": "p"}, "spec": {"containers": "none"}},
    ],
)
def test_a_pod_that_is_none_is_unusable(pod: object) -> None:
    asked = decode_asked(_bytes(Pod=pod, NodeNames=["a"]))
    with pytest.raises(Unusable, match=r"Pod.* cannot be read"):
        read_pod(asked.pod)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"PodName": ""}, "PodName"),
        ({"PodName": "../secrets"}, "PodName"),
        ({"PodName": "a/b"}, "PodName"),
        ({"PodName": ".."}, "PodName"),
        ({"PodName": "a?b"}, "PodName"),
        ({"PodNamespace": "%2e"}, "PodNamespace"),
        ({"PodNamespace": "a" * 254}, "PodNamespace"),
        ({"Node": ""}, "Node"),
        ({"Node": "node 1"}, "Node"),
        ({"PodUID": ""}, "PodUID"),
    ],
)
def test_a_binding_of_nothing_that_could_exist_is_unusable(change: dict[str, str], says: str) -> None:
    good = {"PodName": "cart-1", "PodNamespace": "shop", "PodUID": "u", "Node": "node-1"}
    assert decode_binding(_bytes(**good))
    with pytest.raises(Unusable, match=says):
        decode_binding(_bytes(**(good | change)))


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize(
    "body",
    [b"", b" ", b"{", b"[]", b"null", b"5", b'"x"', b"\xff\xfe", b'{"Pod":{}', b"[" * 100_000, b'{"Pod":' * 100_000],
)
def test_what_is_no_json_object_is_malformed(decode: Any, body: bytes) -> None:
    with pytest.raises(MalformedRequest):
        decode(body)


@pytest.mark.parametrize(
    "fields",
    [
        {"NodeNames": "node-1"},
        {"NodeNames": {"node-1": 1}},
        {"NodeNames": [1]},
        {"NodeNames": [None]},
        {"Nodes": []},
        {"Nodes": {"items": {}}},
        {"Nodes": {"items": [5]}},
        {"Nodes": {"items": [{}]}},
        {"Nodes": {"items": [{"metadata": {"name": None}}]}},
    ],
)
def test_nodes_of_another_shape_are_malformed(fields: dict[str, Any]) -> None:
    with pytest.raises(MalformedRequest):
        decode_asked(_bytes(Pod=POD, **fields))


@pytest.mark.parametrize("victims", [[], {"a": []}, {"a": {"Pods": [{}]}}, {"a": {"NumPDBViolations": "x"}}])
def test_victims_of_another_shape_are_malformed(victims: object) -> None:
    with pytest.raises(MalformedRequest):
        decode_preemption(_bytes(Pod=POD, NodeNameToMetaVictims=victims))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["Pod", "pod", "Nodes", "NodeNames", "nodenames", "NodeNameToVictims", "NodeNameToMetaVictims", "PodName", "PodUID"]
)


@given(fields=st.dictionaries(KEYS, JSON, max_size=5), decode=st.sampled_from(DECODERS))
def test_any_json_is_decoded_or_refused(fields: dict[str, Any], decode: Any) -> None:
    """Whatever else were raised would be an error of ours."""
    with suppress(MalformedRequest, Unusable):
        asked = decode(json.dumps(fields).encode())
        if decode is not decode_binding:
            read_pod(asked.pod)


def test_null_victims_are_none_a_pod_is_read_once_and_nodes_are_utf8() -> None:
    victims = {"a": {"Pods": None, "NumPDBViolations": 0}, "b": {"Pods": [None, {"UID": "u"}]}}
    assert decode_preemption(_bytes(Pod=POD, NodeNameToMetaVictims=victims)).victims == {
        "a": VictimsByUid(()),
        "b": VictimsByUid(("u",)),
    }
    # They would come back as they are, in an answer that is no JSON either.
    with pytest.raises(MalformedRequest, match="not JSON"):
        decode_asked(recorded("nodes-filter").replace(b"kubernetes.io/hostname", b"kubernetes.io/\xffostname"))
    body = _bytes(Pod=POD, NodeNames=["node-1"])
    assert read_pod(decode_asked(body).pod) is read_pod(decode_asked(body).pod)
