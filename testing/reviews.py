"""AdmissionReviews for tests, as an API server sends them, and what comes of an answer."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any


def review_of(pod: Any, *, uid: str = "u-1", namespace: str = "shop", **request: Any) -> bytes:
    """The question about a new pod; `request` replaces parts of it."""
    asked = {
        "uid": uid,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
        "namespace": namespace,
        "operation": "CREATE",
        "userInfo": {"username": "admin", "groups": ["system:masters"]},
        "object": pod,
        "oldObject": None,
        "dryRun": False,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
    }
    return json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked | request}
    ).encode()


def patched(pod: Any, answer: bytes | Mapping[str, Any]) -> Any:
    """The pod as the API server makes it of the answer: RFC 6902 strictly, as far as members of objects go."""
    response = (json.loads(answer) if isinstance(answer, bytes) else answer)["response"]
    assert response["allowed"] is True
    if "patch" not in response:
        assert "patchType" not in response
        return pod
    assert response["patchType"] == "JSONPatch"
    made = json.loads(json.dumps(pod))
    for operation in json.loads(base64.b64decode(response["patch"])):
        *parents, last = [unescaped(part) for part in operation["path"].removeprefix("/").split("/")]
        place = made
        for parent in parents:
            place = place[parent]  # every parent must be there
        assert isinstance(place, dict)
        if operation["op"] == "add":
            place[last] = operation["value"]
        else:
            assert operation["op"] == "remove"
            del place[last]  # what is removed must be there
    return made


def unescaped(part: str) -> str:
    """Of a JSON pointer."""
    return part.replace("~1", "/").replace("~0", "~")
