"""Pages of lists, lines of watches, and whatever else may arrive."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.decoding.decoding import Kind, decode_event, decode_list, decode_pod
from kube.decoding.watched_kinds import EventType, UndecodableObject
from tests.kube.api_json import POD, changed, raw


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{}",
        b'{"items": 3}',
        b'{"items": []',
        b'{"items": []} x',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"items": [], "x": ' + b"[" * 100_000,
        b'{"kind": "Status", "code": 403}',
    ],
)
def test_what_is_no_list_is_refused(body: bytes) -> None:
    with pytest.raises(UndecodableObject, match="list of pods cannot be read"):
        decode_list(Kind.PODS, body)


@pytest.mark.parametrize("event_type", [EventType.ADDED, EventType.MODIFIED, EventType.DELETED])
def test_a_watch_event(event_type: EventType) -> None:
    event = decode_event(Kind.PODS, raw({"type": event_type.value, "object": POD}) + b"\n")
    assert (event.type, event.object, event.resource_version) == (event_type, decode_pod(raw(POD)), "5")


def test_lists_bookmarks_and_errors_are_read_beside_a_bad_item() -> None:
    page = decode_list(Kind.PODS, raw({"metadata": {"resourceVersion": "7", "continue": "abc"}, "items": [POD, POD]}))
    assert (page.resource_version, page.continue_token, page.undecodable) == ("7", "abc", ())
    assert page.objects == [decode_pod(raw(POD))] * 2
    empty = decode_list(Kind.NODES, b'{"metadata": {"resourceVersion": "9"}, "items": null}')
    assert (empty.objects, empty.resource_version, empty.continue_token) == ([], "9", "")
    page = decode_list(Kind.PODS, raw({"metadata": {}, "items": [changed(POD, "spec.nodeName", 3), POD]}))
    assert page.objects == [decode_pod(raw(POD))]
    assert page.undecodable == (
        "Pod shop/cart-7d9f-x2x4z cannot be read: Expected `str | null`, got `int` - at `$.spec.nodeName`",
    )
    bookmark = decode_event(
        Kind.PODS,
        b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"12","creationTimestamp":null},'
        b'"spec":{"containers":null},"status":{}}}',
    )
    assert (bookmark.type, bookmark.object, bookmark.resource_version) == (EventType.BOOKMARK, None, "12")
    expired = decode_event(
        Kind.PODS,
        b'{"type":"ERROR","object":{"kind":"Status","metadata":{},"status":"Failure","message":"too old resource '
        b'version: 1 (9)","reason":"Expired","code":410}}',
    )
    assert (expired.type, expired.code, expired.object) == (EventType.ERROR, 410, None)
    assert expired.message.startswith("too old")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b'{"type": "GONE", "object": {}}',
        b'{"type": "ADDED", "object": {}}',
        b'{"type": "ADDED"}',
        b'{"type": "BOOKMARK", "object": {}}',
        b'{"type": "ERROR", "object": {"code": "410"}}',
    ],
)
def test_bad_events_are_refused(line: bytes) -> None:
    with pytest.raises(UndecodableObject):
        decode_event(Kind.PODS, line)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["1Gi", "100m"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def paths(value: Any, prefix: str = "") -> list[str]:
    """Dotted paths of everything inside a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [p for key, inner in items for p in (f"{prefix}{key}", *paths(inner, f"{prefix}{key}."))]


@given(st.sampled_from([p for p in paths(POD) if not p.split(".")[-1].isdigit() and "/" not in p]), json_values)
def test_any_value_anywhere_is_understood_or_refused(path: str, value: Any) -> None:
    try:
        pod = decode_pod(raw(changed(POD, path, value)))
    except UndecodableObject:
        return
    assert all(0 <= amount < 1e31 for amount in pod.requests.values())


@given(st.binary(max_size=200))
def test_any_bytes_are_understood_or_refused(body: bytes) -> None:
    for decode in (
        lambda: decode_pod(body),
        lambda: decode_list(Kind.NODES, body),
        lambda: decode_event(Kind.JOBS, body),
    ):
        with pytest.raises(UndecodableObject):
            decode()
