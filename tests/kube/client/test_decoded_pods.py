"""What is decoded once is not decoded again, and what is no longer the same is."""

from __future__ import annotations

import json
from typing import Any

from kube.client.kubernetes_source import DecodedPods
from kube.decoding.decoding import Kind, decode_event, watched
from kube.decoding.watched_kinds import decode_page, decode_watch_line
from kube.objects.kubernetes_version import NEWEST, KubernetesVersion

PODS = watched(Kind.PODS, NEWEST)


def pod(name: str, *, uid: str = "", node: str = "", version: str = "7") -> dict[str, Any]:
    spec = {"containers": [{"name": "main"}], **({"nodeName": node} if node else {})}
    metadata = {"name": name, "namespace": "shop", "uid": uid or f"uid-{name}", "resourceVersion": version}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def page(*pods: dict[str, Any]) -> bytes:
    return json.dumps({"metadata": {"resourceVersion": "9"}, "items": pods}, separators=(",", ":")).encode()


def event(what: dict[str, Any], type_: str = "MODIFIED") -> bytes:
    whole = {"kind": "Pod", "apiVersion": "v1", **what}
    return json.dumps({"type": type_, "object": whole}, separators=(",", ":")).encode()


def test_a_pod_is_the_very_same_until_it_changes_or_is_gone() -> None:
    seen = DecodedPods()
    first = decode_page(seen.over(PODS), page(pod("a"), pod("b"))).objects
    changed = decode_watch_line(seen.over(PODS), event(pod("b", node="n", version="8")))
    again = decode_page(seen.over(PODS), page(pod("a"), pod("b", node="n", version="8"))).objects
    assert again[0] is first[0] and again[1] is changed.object
    assert changed.resource_version == "8"
    assert again[1] == decode_event(Kind.PODS, event(pod("b", node="n", version="8"))).object
    seen = DecodedPods()
    decode_page(seen.over(PODS), page(pod("a")))
    (found,) = decode_page(seen.over(PODS), page(pod("a", node="n"))).objects
    assert found == decode_event(Kind.PODS, event(pod("a", node="n"))).object
    seen = DecodedPods()
    decode_page(seen.over(PODS), page(pod("a"), pod("b"), pod("c")))
    decode_watch_line(seen.over(PODS), event(pod("a", version="8")))
    assert len(seen) == 3
    seen.forget("uid-a")
    seen.keep_only(["uid-c", "never seen"])
    assert len(seen) == 1


def test_another_version_of_the_api_server_reads_all_anew() -> None:
    seen, older = DecodedPods(), watched(Kind.PODS, KubernetesVersion(1, 30))
    assert seen.over(PODS) is seen.over(PODS)
    (before,) = decode_page(seen.over(PODS), page(pod("a"))).objects
    (after,) = decode_page(seen.over(older), page(pod("a"))).objects
    assert after is not before
