"""Policies from a ConfigMap as the watch hands it over, and the events about it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from base.errors import InputError
from placement.policies.compiling import PolicyDefaults
from placement.policies.policy_config_map import (
    _TIMING,
    ConfigMapSink,
    PolicyConfigMap,
    policy_text,
    watched_config_map,
)
from placement.policies.policy_reports import PolicyEvents
from placement.policies.provider import PolicyProvider
from tests.placement.policies.made_up import pod

A, B = "default: a\npolicies: {a: {}}", "default: b\npolicies: {b: {}}"
BROKEN = "default: c"


class Server:
    """Remembers what is posted."""

    def __init__(self) -> None:
        self.paths, self.events = list[str](), list[dict[str, Any]]()

    def __call__(self, path: str, body: bytes) -> int:
        self.paths.append(path)
        self.events.append(msgspec.json.decode(body))
        return 201


def config_map(data: dict[str, str], version: str = "1") -> PolicyConfigMap:
    return PolicyConfigMap("kube-system", "policies", "uid-7", version, data)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"policies.yaml": A}, A),
        ({"policies.yaml": A, "notes": "x"}, A),
        ({"any": A}, A),
        ({"policies.yaml": ""}, ""),
    ],
)
def test_where_the_document_is(data: dict[str, str], text: str) -> None:
    assert policy_text(config_map(data)) == text


@pytest.mark.parametrize(("data", "says"), [({}, "no data"), ({"b": A, "a": B}, "the keys a, b")])
def test_where_there_is_none(data: dict[str, str], says: str) -> None:
    with pytest.raises(InputError, match=f"ConfigMap kube-system/policies has {says}: name one policies.yaml"):
        policy_text(config_map(data))


def test_a_config_map_is_decoded_from_the_api_s_json() -> None:
    watched = watched_config_map("kube-system", "policies")
    metadata = {"namespace": "kube-system", "name": "policies", "uid": "uid-7", "resourceVersion": "12"}
    body = {"metadata": metadata, "data": {"policies.yaml": A}, "binaryData": {"x": "AA=="}, "immutable": True}
    assert watched.decoded(json.dumps(body).encode()) == (config_map({"policies.yaml": A}, "12"), "12")
    assert watched.decoded(json.dumps({"metadata": metadata}).encode())[0].data == {}
    assert watched.path == "/api/v1/namespaces/kube-system/configmaps"
    assert watched.query == {"fieldSelector": "metadata.name=policies"}


def test_what_became_of_it_is_told_in_events_on_the_config_map() -> None:
    server = Server()
    provider = PolicyProvider(PolicyDefaults(), source="ConfigMap kube-system/policies")
    events = PolicyEvents(server, instance="one", clock=lambda: 1000.0)
    sink = ConfigMapSink(provider, events)
    events.start()
    sink.replace([])  # nothing there yet: nothing to write an event on
    refusal = provider.status.refusal
    assert refusal is not None and refusal.message == "there is no ConfigMap kube-system/policies"
    sink.put(config_map({"policies.yaml": A}, "1"))
    sink.replace([config_map({"policies.yaml": A}, "1")])
    sink.put(config_map({"policies.yaml": BROKEN}, "2"))
    sink.put(config_map({"policies.yaml": BROKEN}, "3"))
    sink.put(config_map({}, "4"))
    sink.delete(config_map({}, "5"))
    sink.put(config_map({"policies.yaml": B}, "6"))
    events.stop(timeout=30)
    assert [(event["reason"], event["type"]) for event in server.events] == [
        ("PolicyAccepted", "Normal"),
        ("PolicyRefused", "Warning"),
        ("PolicyRefused", "Warning"),
        ("PolicyGone", "Warning"),
        ("PolicyAccepted", "Normal"),
    ]
    assert set(server.paths) == {"/apis/events.k8s.io/v1/namespaces/kube-system/events"}
    refused = server.events[1]
    assert refused["regarding"] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": "kube-system",
        "name": "policies",
        "uid": "uid-7",
    }
    assert refused["note"] == (
        "default: there is no policy 'c': known are: settings; version 1 stays in effect"
    )  # fmt: skip
    assert provider.choose(pod()).policy.name == "b"


def test_a_watch_ends_by_itself_before_silence_counts_as_a_dead_connection_and_that_is_soon() -> None:
    """Else a document that does not change would look like a connection that died, or one that died like the former."""
    assert max(_TIMING.watch_seconds) < _TIMING.watch_read_seconds <= 30
