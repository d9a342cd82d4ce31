"""Objects with their statuses: whatever is stored comes, and says what is wrong with it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from kube.decoding.stored_templates import LastError, ObjectStatus, StoredCondition, stored
from kube.decoding.watched_kinds import UndecodableObject, Watched


class _Spec(msgspec.Struct):
    size: int


class _Object(msgspec.Struct):
    spec: _Spec


def _decode(body: bytes | Raw) -> tuple[int, str]:
    return msgspec.json.decode(body, type=_Object).spec.size, ""


WATCHED = stored(Watched("things", "Thing", "/apis/x/v1/things", _decode))


def _read(status: Any = None, *, size: Any = 7) -> Any:
    metadata = {"name": "one", "uid": "u-1", "generation": 3, "resourceVersion": "12"}
    body = json.dumps({"metadata": metadata, "spec": {"size": size}, "status": status}).encode()
    found, version = WATCHED.decoded(body)
    assert version == "12" and (found.name, found.uid, found.generation) == ("one", "u-1", 3)
    return found


@pytest.mark.parametrize("status", [None, {}, 7, [], {"conditions": 7}, {"boundPods": "many"}, {"lastError": []}])
def test_a_status_that_cannot_be_read_is_none(status: Any) -> None:
    assert _read(status).status == ObjectStatus() and _read(status).object == 7


def test_an_object_comes_with_its_status_or_the_reason_why_not() -> None:
    assert WATCHED.optional and WATCHED.path == "/apis/x/v1/things"
    status = {
        "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 3}],
        "boundPods": 4,
        "lastError": {"message": "m", "pod": "shop/a", "time": "2026-11-21T18:00:00Z"},
        "unknown": {},
    }
    found = _read(status)
    assert (found.object, found.problem) == (7, "")
    assert found.status == ObjectStatus(
        (StoredCondition("Ready", "True", observed_generation=3),),
        bound_pods=4,
        last_error=LastError("m", "shop/a", "2026-11-21T18:00:00Z"),
    )
    found = _read(size="large")
    assert found.object is None and "$.spec.size" in found.problem
    with pytest.raises(UndecodableObject, match="Thing"):
        WATCHED.decoded(b'{"spec":{"size":7}}')
    assert _read({"boundPods": 1}).says_the_same(_read({"boundPods": 2}))
    assert not _read(size=8).says_the_same(_read(size=7)) and not _read().says_the_same(None)
