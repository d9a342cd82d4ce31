"""Scores over HTTP from the real application on a socket: the same as without HTTP, or a clear "no"."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pytest

from base.errors import InputError
from extender.answer_settings import AnswerOptions
from extender.extender import Extender
from extender.extender_options import ExtenderOptions
from extender.score_sources import RemoteScorer, RemoteScores, ScorerUnavailable
from forecast.hot_share import HOT_SHARE
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo, QosClass
from scorer.service.app import create_app
from scorer.service.scorer_service_settings import ScorerServiceOptions
from serving.server_settings import ServerOptions, ServingOptions
from testing.authority import Authority
from testing.constants import with_constants
from testing.servers.prometheus import free_port
from tests.scorer.live_cluster import pod_of
from tests.scorer.scorer_at import LiveScorer
from tests.scorer.service.fake_scorer import FakeScorer
from tests.serving.served import served


class Answering:
    """Context manager. connections, requests: so far; status, body and location may be changed any time."""

    def __init__(self, status: int = 200, body: bytes = b"", *, location: str = "") -> None:
        self.status, self.body, self.location = status, body, location
        self.connections = self.requests = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(server: Answering) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # header and body in one packet

        def setup(self) -> None:
            server.connections += 1
            super().setup()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            server.requests += 1
            self.send_response(server.status)
            if server.location:
                self.send_header("Location", server.location)
            self.send_header("Content-Length", str(len(server.body)))
            self.end_headers()
            self.wfile.write(server.body)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    return Handler


NODES = ["node-0", "node-1", "node-2", "node-3"]
LOADED = [pod_of(n, f"p{n}", f"node-{on}", cpu=1.0) for n, on in enumerate((0, 0, 0, 1, 2))]
NEW = pod_of(0, "new")
SAID = '{"cpu": "3", "memory": "1Gi"}'
ASKING = {
    **{f"service {n}": pod_of(n, "new") for n in range(6)},
    "bare": pod_of(None, "new", cpu=4.0),
    "guaranteed": pod_of(1, "new", qos=QosClass.GUARANTEED),
    "virtual request said": pod_of(1, "new", annotations={"forecast-scheduler.io/virtual-request": SAID}),
    "opted out": pod_of(0, "new", annotations={"forecast-scheduler.io/opt-out": "true"}),
}
PATIENT = 30.0
"""Seconds: the machine may be busy, and no test waits for it to pass."""


@pytest.fixture
def tested() -> LiveScorer:
    return LiveScorer(pods=LOADED)


@pytest.fixture
def remote(tested: LiveScorer) -> Iterator[RemoteScores]:
    with served(create_app(tested.scorer, hot=HOT_SHARE)) as url:
        yield RemoteScores(RemoteScorer(url, seconds=PATIENT))


def scores_body(**changes: Any) -> bytes:
    """An answer to /v1/scores as it should be, but for the changes; None = left out."""
    scores = dict(zip(NODES, (10.0, 20.0, 30.0, 40.0), strict=True))
    body = {"scores": scores, "level": 0, "reasons": [], "model": "v1", "weights": {}, "unknown_nodes": []}
    return json.dumps({k: v for k, v in (body | {"ranking": scores} | changes).items() if v is not None}).encode()


@pytest.mark.parametrize("pod", ASKING.values(), ids=ASKING)
def test_the_same_points_as_without_http(tested: LiveScorer, remote: RemoteScores, pod: PodInfo) -> None:
    options = ExtenderOptions(answers=with_constants(AnswerOptions(), charge=0))
    # An extender beside a scorer elsewhere knows nodes and pods, and has no model.
    beside = LiveScorer(pods=LOADED, without_model=True)
    near = Extender(tested.scorer, options).prioritize(pod, NODES)
    assert Extender(beside.scorer, options, scores=remote).prioritize(pod, NODES) == near
    there, here = remote.score(pod, NODES), tested.scorer.score(pod, NODES)
    np.testing.assert_allclose(there.ranking, here.ranking, atol=1e-4)
    np.testing.assert_allclose(there.scores, here.scores, atol=1e-4)
    assert (there.nodes, there.level, there.reasons) == (NODES, here.level, here.reasons)
    assert (there.model_version, dict(there.weights)) == (here.model_version, dict(here.weights))


def test_overloaded_nodes_keep_their_ranking_and_unknown_ones_are_named(
    tested: LiveScorer, remote: RemoteScores
) -> None:
    tested.scorer.tables.replace(Kind.PODS, [pod_of(n % 6, f"p{n}", f"node-{n % 2}", cpu=1.0) for n in range(100)])
    scored = remote.score(NEW, ["nowhere", *NODES])
    assert scored.unknown_nodes == ("nowhere",)
    assert scored.scores[1] == scored.scores[2] == 0
    np.testing.assert_allclose(scored.ranking, tested.scorer.score(NEW, scored.nodes).ranking, atol=1e-4)
    assert scored.ranking[1] < 0


def test_the_charge_reaches_it_and_ends(tested: LiveScorer, remote: RemoteScores) -> None:
    other, before = pod_of(0, "next"), remote.score(NEW, NODES).ranking
    remote.charge(replace(other, uid="next"), "node-3", 2.0)
    charged = remote.score(NEW, NODES).ranking
    np.testing.assert_array_equal(charged[:3], before[:3])
    assert charged[3] < before[3]
    same = LiveScorer(pods=LOADED)
    same.scorer.charge_provisionally(replace(other, uid="next"), "node-3", 2.0)
    np.testing.assert_allclose(charged, same.scorer.score(NEW, NODES).ranking, atol=1e-4)
    tested.later(3)
    after = tested.scorer.score(NEW, NODES).ranking  # the hour goes on meanwhile
    np.testing.assert_allclose(remote.score(NEW, NODES).ranking, after, atol=1e-4)
    assert after[3] > charged[3]


def test_a_token_is_sent_and_read_anew_when_it_changes(tested: LiveScorer, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.write_text("secret\n")
    ours.write_text("wrong\n")
    with served(
        create_app(tested.scorer, ScorerServiceOptions(serving=ServingOptions(token_files=(theirs,))), hot=HOT_SHARE)
    ) as url:
        remote = RemoteScores(RemoteScorer(url, token_file=ours, seconds=PATIENT))
        with pytest.raises(ScorerUnavailable, match="answered 401"):
            remote.score(NEW, NODES)
        ours.write_text("secret\n")
        assert remote.score(NEW, NODES).model_version == "v1"
        for unusable in (b"two\nlines\n", b"\xff\xfe", "schlüssel €".encode()):
            ours.write_bytes(unusable)
            with pytest.raises(ScorerUnavailable):
                remote.score(NEW, NODES)
        ours.unlink()
        with pytest.raises(ScorerUnavailable, match="ours"):
            remote.score(NEW, NODES)
        with pytest.raises(InputError, match=r"token file .*ours"):
            RemoteScores(RemoteScorer(url, token_file=ours))


def test_tls_with_an_authority_of_ones_own_and_a_client_certificate(tested: LiveScorer, tmp_path: Path) -> None:
    authority, other = Authority(tmp_path, "authority"), Authority(tmp_path, "other")
    certificate, key = authority.issue("server")
    options = ServerOptions(port=0, tls_cert=certificate, tls_key=key, client_ca=authority.ca)
    mine, stranger = authority.issue("client"), other.issue("stranger")
    with served(create_app(tested.scorer, hot=HOT_SHARE), options) as url:
        right = RemoteScorer(url, ca=authority.ca, client_cert=mine[0], client_key=mine[1], seconds=PATIENT)
        assert RemoteScores(right).score(NEW, NODES).model_version == "v1"
        for wrong in (
            replace(right, ca=None),
            replace(right, ca=other.ca),
            replace(right, client_cert=None, client_key=None),
            replace(right, client_cert=stranger[0], client_key=stranger[1]),
            RemoteScorer(url.replace("https", "http"), seconds=PATIENT),
        ):
            with pytest.raises(ScorerUnavailable):
                RemoteScores(wrong).score(NEW, NODES)


@pytest.mark.parametrize(
    "changes",
    [
        {"url": "scorer:8080"},
        {"url": "ftp://scorer"},
        {"url": "http://"},
        {"url": "http://["},
        {"url": "http://scorer:99999"},
        {"url": "http://scorer 8080"},
        {"ca": Path("/nowhere/ca.pem")},
        {"client_cert": Path("/nowhere/client.pem")},
        {"client_key": Path("/nowhere/client.key")},
        {"url": "http://scorer:8080", "ca": Path("/nowhere/ca.pem")},
        {"ca": Path(__file__)},
        {"token_file": Path("/nowhere/token")},
    ],
    ids=str,
)
def test_what_cannot_work_is_refused_at_once(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="scorer") as refused:
        RemoteScores(replace(RemoteScorer("https://scorer:8080"), **changes))
    assert "\n" not in str(refused.value)


def test_one_that_is_down_is_said_to_be_and_asked_again_once_it_is_back(tested: LiveScorer) -> None:
    port = free_port()
    remote = RemoteScores(RemoteScorer(f"http://127.0.0.1:{port}", seconds=PATIENT))
    for _ in range(2):
        with pytest.raises(ScorerUnavailable, match="does not answer"):
            remote.score(NEW, NODES)
        with served(create_app(tested.scorer, hot=HOT_SHARE), ServerOptions(port=port)):
            # The second time round over a connection of which the other end is gone.
            assert remote.score(NEW, NODES).model_version == "v1"


def test_one_that_is_slow_is_not_waited_for() -> None:
    slow, over = FakeScorer(), threading.Event()

    def wait() -> None:
        over.wait(PATIENT)

    slow.fail = wait
    with served(create_app(slow, with_constants(ScorerServiceOptions(), deadline=2 * PATIENT), hot=HOT_SHARE)) as url:
        try:
            with pytest.raises(ScorerUnavailable, match="timed out"):
                RemoteScores(RemoteScorer(url, seconds=0.1)).score(NEW, NODES)
            assert not over.is_set()
        finally:
            over.set()


def test_one_that_is_not_ready_or_makes_a_mistake_gives_no_scores() -> None:
    theirs = FakeScorer()

    def mistake() -> None:
        raise ZeroDivisionError

    with served(create_app(theirs, hot=HOT_SHARE)) as url:
        remote = RemoteScores(RemoteScorer(url, seconds=PATIENT))
        theirs.ready = False
        with pytest.raises(ScorerUnavailable, match="answered 503"):
            remote.score(NEW, NODES)
        theirs.ready = True
        theirs.fail = mistake
        with pytest.raises(ScorerUnavailable, match="answered 500"):
            remote.score(NEW, NODES)
        theirs.fail = lambda: None
        assert len(remote.score(NEW, theirs.names).scores) == len(theirs.names)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b"oops"),
        (204, b""),
        (200, b""),
        (200, b"<html>Please log in</html>"),
        (200, b"[]"),
        (200, b"{}"),
        (200, scores_body()[:-20]),
        (200, b"\xff" + scores_body()),
        (200, scores_body(scores={"node-0": 1.0})),
        (200, scores_body(ranking={"node-0": 1.0})),
        (200, scores_body(ranking=dict.fromkeys(NODES, None))),
        (200, scores_body(ranking=dict.fromkeys(NODES, "NaN"))),
        (200, scores_body().replace(b"40.0", b"NaN")),
        (200, scores_body().replace(b"40.0", b"1e999")),
        (200, scores_body(level=9)),
        (200, scores_body(level=-1)),
    ],
)
def test_an_answer_that_is_none_gives_no_scores(status: int, body: bytes) -> None:
    with Answering(status, body) as server:
        remote = RemoteScores(RemoteScorer(server.url, seconds=PATIENT))
        with pytest.raises(ScorerUnavailable):
            remote.score(NEW, NODES)
        server.status, server.body = 200, scores_body()
        assert remote.score(NEW, NODES).ranking.tolist() == [10, 20, 30, 40]


def test_nothing_is_sent_twice_or_elsewhere_and_an_older_scorer_is_understood(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    with Answering(200, scores_body()) as elsewhere, Answering(307, location=elsewhere.url) as server:
        remote = RemoteScores(RemoteScorer(server.url, token_file=tmp_path / "token", seconds=PATIENT))
        with pytest.raises(ScorerUnavailable, match="answered 307"):
            remote.score(NEW, NODES)
        assert (server.requests, elsewhere.requests) == (1, 0)
    with Answering(200, scores_body(ranking=None)) as server:
        scored = RemoteScores(RemoteScorer(server.url, seconds=PATIENT)).score(NEW, NODES)
        assert scored.ranking.tolist() == scored.scores.tolist() == [10, 20, 30, 40]
    with Answering(200, scores_body()) as server:
        remote = RemoteScores(RemoteScorer(server.url, seconds=PATIENT))
        for _ in range(20):
            remote.score(NEW, NODES)
            remote.charge(NEW, "node-0", 2.0)
        assert (server.connections, server.requests) == (1, 40)


def test_a_charge_that_cannot_be_told_costs_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    with Answering(500) as server:
        remote = RemoteScores(RemoteScorer(server.url, seconds=PATIENT))
        for _ in range(3):
            remote.charge(NEW, "node-0", 2.0)
        assert [record.levelname for record in caplog.records] == ["WARNING"]  # said once
        server.status = 200
        remote.charge(NEW, "node-0", 2.0)
        server.status = 503
        remote.charge(NEW, "node-0", 2.0)
        assert len(caplog.records) == 2
        assert server.requests == 5


def test_threads_may_ask_at_once(tested: LiveScorer, remote: RemoteScores) -> None:
    expected = {name: tested.scorer.score(pod, NODES).ranking for name, pod in ASKING.items()}
    wrong: list[str] = []

    def ask() -> None:
        for name, pod in ASKING.items():
            if not np.allclose(remote.score(pod, NODES).ranking, expected[name], atol=1e-4):
                wrong.append(name)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENT)
    assert not wrong and not any(thread.is_alive() for thread in threads)
