"""Answers that a real API server gives too rarely for a test to wait for; the usual ones are in tests/live_cluster."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from base.backoff import Backoff
from kube.client.kubernetes_client import api_client
from kube.client.kubernetes_contract import Timing, WatchStatus
from kube.client.kubernetes_source import KubernetesSource, ResourceSource
from kube.client.kubernetes_watcher import ResourceWatcher
from kube.decoding.decoding import WATCHED, ApiObject, Kind, decode_pod
from testing.waiting import eventually
from tests.kube.scripted_server import Answer, ScriptedServer, bookmark, event, page, pod_json
from tests.live_cluster.stored_objects import StoredObjects

QUICK = Timing(backoff=Backoff(first=0.01, longest=0.05))
IDLE = Answer(chunks=[bookmark("99")], hold=30)

Script = Callable[[int, dict[str, str]], Answer]


@contextmanager
def pods_from(
    script: Script,
    directory: Path,
    sink: StoredObjects,
    timing: Timing = QUICK,
    clock: Callable[[], float] = float,
    is_known: Callable[[bytes], bool] = lambda line: False,
) -> Iterator[tuple[ScriptedServer, Callable[[], WatchStatus]]]:
    with ScriptedServer(script) as server:
        source = KubernetesSource(
            api_client(server.kubeconfig(directory)),
            sink,
            kinds=[Kind.PODS],
            page_size=2,
            timing=timing,
            clock=clock,
            is_known=is_known,
        )
        source.start()
        try:
            yield server, lambda: source.status()[Kind.PODS]
        finally:
            source.stop()


def in_order(*answers: Answer) -> Script:
    """One after the other, then an idle watch."""
    return lambda number, query: answers[number] if number < len(answers) else IDLE


@dataclass(frozen=True)
class OneKind:
    """The pods of a sink."""

    sink: StoredObjects

    def replace(self, objects: Sequence[ApiObject]) -> None:
        self.sink.replace(Kind.PODS, objects)

    def put(self, obj: ApiObject) -> None:
        self.sink.put(Kind.PODS, obj)

    def delete(self, obj: ApiObject) -> None:
        self.sink.delete(Kind.PODS, obj)


def names(sink: StoredObjects) -> set[str]:
    return sink.names(Kind.PODS)


def test_pages_are_applied_as_one_list(tmp_path: Path) -> None:
    sink = StoredObjects()
    script = in_order(page(pod_json("a"), pod_json("b"), version="7", token="next"), page(pod_json("c"), version="7"))
    with pods_from(script, tmp_path, sink) as (server, status):
        assert eventually(lambda: len(server.queries) == 3)
        assert names(sink) == {"a", "b", "c"}
        assert server.queries[1] == {"limit": "2", "continue": "next"}
        assert server.queries[2]["resourceVersion"] == "7"
        assert eventually(lambda: status().resource_version == "99")


def test_a_page_that_is_too_large_is_asked_for_with_fewer_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kube.client.kubernetes_watcher._LARGEST_PAGE", 2_000)
    padded = pod_json("a", spec={"containers": [{"name": "c", "args": ["x" * 1_500]}]})
    sink = StoredObjects()
    script = in_order(page(padded, padded, token="next"), page(padded, token="next"), page(pod_json("b"), version="7"))
    with pods_from(script, tmp_path, sink) as (server, _):
        assert eventually(lambda: names(sink) == {"a", "b"})
        assert [query["limit"] for query in server.queries[:3]] == ["2", "1", "1"]


def test_an_object_and_an_event_without_end_are_given_up_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kube.client.kubernetes_watcher._LARGEST_PAGE", 1_000)
    monkeypatch.setattr("kube.client.kubernetes_watcher._LARGEST_LINE", 1_000)
    endless = Answer(chunks=[b"x" * 2_000], hold=30.0)
    is_seen = threading.Event()  # so that no error passes between two looks of this test

    def script(number: int, query: dict[str, str]) -> Answer:
        return page(pod_json("a")) if is_seen.is_set() and not query.get("watch") else endless

    with pods_from(script, tmp_path, StoredObjects()) as (server, status):
        assert eventually(lambda: "an object of pods: the answer is larger than 1,000 bytes" in status().last_error)
        is_seen.set()
        assert eventually(lambda: "a watch event has more than 1,000 bytes" in status().last_error)
        assert eventually(lambda: len(server.queries) > 4)


def test_a_resource_that_need_not_be_installed_has_no_objects_while_it_is_not(tmp_path: Path) -> None:
    """Synced all the same; and back again once it is installed."""
    sink = StoredObjects()
    sink.put(Kind.PODS, decode_pod(pod_json("stale")))
    watched = replace(WATCHED[Kind.PODS], optional=True)
    installed = threading.Event()

    def script(number: int, query: dict[str, str]) -> Answer:
        if query.get("watch"):
            return IDLE
        return page(pod_json("a")) if installed.is_set() else Answer(404, [b"{}"])

    with ScriptedServer(script) as server:
        only_pods = OneKind(sink)
        watcher = ResourceWatcher(api_client(server.kubeconfig(tmp_path)), only_pods, watched, timing=QUICK)
        source = ResourceSource([watcher])
        source.start()
        try:
            assert source.wait_synced(30)
            assert names(sink) == set()
            installed.set()
            assert eventually(lambda: names(sink) == {"a"})
        finally:
            source.stop()


def test_a_resource_is_read_in_the_first_version_that_is_served(tmp_path: Path) -> None:
    """Not synced before all versions were asked for; a version that goes away is replaced by another."""
    first, *others = paths = ["/apis/x/v1/pods", "/apis/x/v1beta2/pods", "/apis/x/v1alpha3/pods"]
    later = tuple(replace(WATCHED[Kind.PODS], path=path) for path in others)
    watched = replace(WATCHED[Kind.PODS], optional=True, path=first, other_versions=later)
    served = threading.Event()

    def script(number: int, query: dict[str, str]) -> Answer:
        at = server.paths[-1]
        if query.get("watch"):
            return Answer(404, [b"{}"]) if served.is_set() and at == paths[1] else IDLE
        if at == (paths[0] if served.is_set() else paths[1]):
            return page(pod_json("new" if served.is_set() else "a"))
        return Answer(404, [b"{}"])

    sink = StoredObjects()
    with ScriptedServer(script) as server:
        watcher = ResourceWatcher(api_client(server.kubeconfig(tmp_path)), OneKind(sink), watched, timing=QUICK)
        source = ResourceSource([watcher])
        source.start()
        try:
            assert source.wait_synced(30)
            assert names(sink) == {"a"}
            assert eventually(lambda: len(server.paths) >= 3)
            assert server.paths[:3] == [*paths[:2], paths[1]] and server.queries[2].get("watch"), "watched where listed"
            served.set()
            source.list_again({"pods"})
            assert eventually(lambda: names(sink) == {"new"})
        finally:
            source.stop()


def test_a_list_that_breaks_halfway_changes_nothing(tmp_path: Path) -> None:
    half = Answer(chunks=[b'{"metadata":{"resourceVersion":"1"},"items":['], broken=True)
    script = in_order(page(pod_json("a")), Answer(410, [b"{}"]), half, Answer(chunks=[b"{]"]), page(pod_json("b")))
    seen: list[set[str]] = []

    class Listening(StoredObjects):
        def replace(self, kind: Kind, objects: Sequence[ApiObject]) -> None:
            super().replace(kind, objects)
            seen.append(names(self))

    sink = Listening()
    with pods_from(script, tmp_path, sink):
        assert eventually(lambda: names(sink) == {"b"})
    assert seen == [{"a"}, {"b"}]


def test_a_watch_resumes_where_the_last_event_or_bookmark_left_it(tmp_path: Path) -> None:
    sink = StoredObjects()
    new = pod_json("b")
    new["metadata"]["resourceVersion"] = "20"
    script = in_order(
        page(pod_json("a"), version="10"),
        Answer(chunks=[event("ADDED", new)], broken=True),
        Answer(chunks=[bookmark("30")]),
    )
    with pods_from(script, tmp_path, sink) as (server, status):
        assert eventually(lambda: len(server.queries) == 4)
        assert [query.get("resourceVersion") for query in server.queries] == [None, "10", "20", "30"]
        assert names(sink) == {"a", "b"}
        assert (status().lists, status().events) == (1, 1)


def test_an_event_that_says_nothing_new_is_not_read_and_comes_again_when_the_watch_resumes(tmp_path: Path) -> None:
    sink, lines = StoredObjects(), list[bytes]()

    def is_known(line: bytes) -> bool:
        lines.append(line)
        return b'"name": "b"' in line and len(lines) < 3

    known, new = pod_json("b"), pod_json("c")
    known["metadata"]["resourceVersion"] = "20"
    script = in_order(
        page(pod_json("a"), version="10"),
        Answer(chunks=[event("ADDED", known)], broken=True),
        Answer(chunks=[event("ADDED", known), event("ADDED", known), event("ADDED", new)]),
    )
    with pods_from(script, tmp_path, sink, is_known=is_known) as (server, status):
        assert eventually(lambda: names(sink) == {"a", "b", "c"})
        assert [query.get("resourceVersion") for query in server.queries[:3]] == [None, "10", "10"]
        assert status().events == 2 and [line + b"\n" for line in lines[:3]] == [event("ADDED", known)] * 3


def test_an_unreadable_event_is_passed_over_said_once_and_mended_by_a_later_list(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    sink, now = StoredObjects(), [1000.0]
    bad = event("MODIFIED", pod_json("a", spec={"containers": 5}))
    after = event("ADDED", pod_json("b"))
    watch = Answer(chunks=[bad, b"not json\n", after], hold=30)
    late = Answer(chunks=[bookmark("60")], hold=30)
    script = in_order(page(pod_json("a")), watch, page(pod_json("c")), late)

    with pods_from(script, tmp_path, sink, clock=lambda: now[0]) as (server, status):
        assert eventually(lambda: names(sink) == {"a", "b"})
        assert status().undecodable == 2
        assert [record.levelname for record in caplog.records] == ["ERROR"]
        assert len(server.queries) == 2  # not yet listed again
        now[0] += 301
        server.ending.set()  # the stream ends: it is time for a list
        assert eventually(lambda: names(sink) == {"c"})
        assert status().relists == 1


def test_an_unreadable_object_and_a_failing_list_are_told_and_harm_no_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sink = StoredObjects()
    with pods_from(in_order(page(pod_json("a"), pod_json("b", spec=7))), tmp_path, sink) as (_, status):
        assert eventually(lambda: status().synced)
        assert names(sink) == {"a"}
        assert status().undecodable == 1
    assert "default/b" in caplog.text
    caplog.set_level(logging.WARNING)
    with pods_from(lambda number, query: Answer(500, [b"etcd is gone"]), tmp_path, StoredObjects()) as (server, status):
        assert eventually(lambda: len(server.queries) >= 40)
        assert status().last_error == "500 etcd is gone"
        assert not status().synced
    assert 1 <= len(caplog.records) <= 8


def test_a_mute_watch_and_an_expired_one_list_again(tmp_path: Path) -> None:
    sink = StoredObjects()
    too_old = event("ERROR", {"kind": "Status", "code": 410, "message": "too old resource version"})
    script = in_order(page(pod_json("a")), Answer(chunks=[too_old]), page(pod_json("b")))
    with pods_from(script, tmp_path, sink) as (_, status):
        assert eventually(lambda: names(sink) == {"b"})
        assert status().relists == 1
    sink = StoredObjects()
    script = in_order(page(pod_json("a"), version="900"), Answer(hold=30), page(pod_json("b"), version="40"))
    with pods_from(script, tmp_path, sink, replace(QUICK, watch_read_seconds=0.2)) as (server, _):
        assert eventually(lambda: names(sink) == {"b"})
        assert [query.get("resourceVersion") for query in server.queries[:3]] == [None, "900", None]
