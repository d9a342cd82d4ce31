from __future__ import annotations

import contextlib
import http.client
import signal
import socket
import ssl
import threading
import time
from pathlib import Path

import httpx
import pytest

from base.errors import InputError
from forecast.hot_share import HOT_SHARE
from scorer.service.app import create_app
from serving.server import ScorerServer
from serving.server_settings import ServerOptions
from serving.tls import MOST_HANDSHAKES
from testing.authority import Authority
from testing.constants import with_constants
from testing.waiting import eventually
from tests.scorer.service.fake_scorer import FakeScorer
from tests.serving.served import process, served


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "authority")


def _trusting(authority: Authority, *client: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.ca))
    if client:
        context.load_cert_chain(client[0], client[1])
    return context


def _address(url: str) -> tuple[str, int]:
    parsed = httpx.URL(url)
    assert parsed.port is not None
    return parsed.host, parsed.port


def _subject(url: str, authority: Authority) -> str:
    """Common name of the certificate the server shows."""
    with (
        socket.create_connection(_address(url), timeout=10) as plain,
        _trusting(authority).wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        certificate = secured.getpeercert()
    assert certificate
    return str(certificate["subject"][0][0][1])


def test_ports_are_found_or_refused_with_the_way_out(scorer: FakeScorer) -> None:
    with served(create_app(scorer, hot=HOT_SHARE)) as url:
        assert url.startswith("http://127.0.0.1:") and not url.endswith(":0")
        assert httpx.get(f"{url}/v1/nodes").status_code == 200
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=rf"cannot listen on 127.0.0.1:{port} .*choose another port"):
            ScorerServer(create_app(scorer, hot=HOT_SHARE), ServerOptions(port=port))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"host": "no.such.host.invalid"}, "no.such.host.invalid"),
        ({"port": 70_000}, "70000"),
        ({"tls_key": Path("key.pem")}, "without tls_cert"),
        ({"client_ca": Path("ca.pem")}, "without tls_cert"),
        ({"client_names": ("proxy",)}, "without client_ca"),
        ({"tls_cert": Path("/nowhere/cert.pem")}, "/nowhere/cert.pem"),
    ],
)
def test_options_that_cannot_work_are_refused(scorer: FakeScorer, options: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        ScorerServer(create_app(scorer, hot=HOT_SHARE), ServerOptions(**{"port": 0} | options))  # type: ignore[arg-type]


def test_a_key_of_another_certificate_is_refused(scorer: FakeScorer, authority: Authority) -> None:
    certificate, _ = authority.issue("one")
    _, key = authority.issue("two")
    with pytest.raises(InputError, match="cannot be used"):
        ScorerServer(create_app(scorer, hot=HOT_SHARE), ServerOptions(port=0, tls_cert=certificate, tls_key=key))


@pytest.mark.parametrize("names", [(), ("proxy", "other")], ids=["any name", "by name"])
def test_only_clients_of_the_authority_and_of_these_names_are_let_in(
    scorer: FakeScorer, authority: Authority, tmp_path: Path, names: tuple[str, ...]
) -> None:
    certificate, key = authority.issue("server")
    strangers: list[tuple[Path, ...]] = [
        (),
        Authority(tmp_path, "other").issue("proxy", file="of-another"),
        *[authority.issue("stranger")] * bool(names),
    ]
    options = ServerOptions(port=0, tls_cert=certificate, tls_key=key, client_ca=authority.ca, client_names=names)
    with served(create_app(scorer, hot=HOT_SHARE), options) as url:
        with httpx.Client(verify=_trusting(authority, *authority.issue("proxy"))) as client:
            assert client.get(f"{url}/v1/nodes").status_code == 200
        for stranger in strangers:
            with httpx.Client(verify=_trusting(authority, *stranger)) as client, pytest.raises(httpx.HTTPError):
                client.get(f"{url}/healthz")


def test_a_renewed_certificate_is_shown_without_a_restart(
    scorer: FakeScorer, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    certificate, key = authority.issue("before", file="server")
    options = with_constants(ServerOptions(port=0, tls_cert=certificate, tls_key=key), reload_every=0.05)
    with served(create_app(scorer, hot=HOT_SHARE), options) as url, httpx.Client(verify=_trusting(authority)) as client:
        assert client.get(f"{url}/healthz").status_code == 200
        assert _subject(url, authority) == "before"
        # Half of the pair, then nonsense: the old pair stays.
        renewed_key = authority.issue("middle", file="elsewhere")[1].read_bytes()
        key.write_bytes(renewed_key)
        assert eventually(lambda: "stays as it was" in caplog.text)
        certificate.write_text("nonsense")
        time.sleep(0.2)
        assert _subject(url, authority) == "before"
        authority.issue("after", file="server")
        assert eventually(lambda: _subject(url, authority) == "after")
        assert client.get(f"{url}/healthz").status_code == 200  # a connection made before lives on


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_a_signal_drains_and_ends_with_status_0(number: signal.Signals) -> None:
    with process("1.0") as (running, url), httpx.Client() as client:
        assert client.get(f"{url}/readyz").status_code == 200
        running.send_signal(number)
        assert eventually(lambda: client.get(f"{url}/readyz").status_code == 503)
        assert client.get(f"{url}/v1/nodes").status_code == 200  # still served, while load balancers notice
        assert running.wait(20) == 0
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/healthz")


def test_a_client_that_never_finishes_its_header_is_hung_up_on() -> None:
    with process() as (_, url):
        with socket.create_connection(_address(url), timeout=20) as slow:
            slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-")
            assert slow.recv(100) == b""
        with socket.create_connection(_address(url), timeout=20) as silent:
            assert silent.recv(100) == b""
        with httpx.Client() as client:  # a connection between two requests is left alone
            client.get(f"{url}/healthz")
            time.sleep(1.3)
            assert client.get(f"{url}/healthz").status_code == 200


def test_a_client_that_never_ends_its_handshake_is_hung_up_on(scorer: FakeScorer, authority: Authority) -> None:
    certificate, key = authority.issue("server")
    options = with_constants(ServerOptions(port=0, tls_cert=certificate, tls_key=key), header_timeout=0.5)
    with (
        served(create_app(scorer, hot=HOT_SHARE), options) as url,
        socket.create_connection(_address(url), timeout=20) as silent,
    ):
        assert silent.recv(100) == b""


def test_where_too_many_are_agreeing_on_tls_the_oldest_goes(scorer: FakeScorer, authority: Authority) -> None:
    certificate, key = authority.issue("server")
    options = with_constants(ServerOptions(port=0, tls_cert=certificate, tls_key=key), header_timeout=60)
    with served(create_app(scorer, hot=HOT_SHARE), options) as url, contextlib.ExitStack() as held:
        silent = [
            held.enter_context(socket.create_connection(_address(url), timeout=20)) for _ in range(MOST_HANDSHAKES + 5)
        ]
        for one in silent[:5]:
            assert one.recv(100) == b""
        silent[5].settimeout(0.2)
        with pytest.raises(TimeoutError):
            silent[5].recv(100)
        assert httpx.get(f"{url}/healthz", verify=_trusting(authority)).status_code == 200


def _asked(connection: socket.socket, path: str) -> int:
    """The answer's status. Raises ConnectionError where it was hung up on."""
    connection.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode())
    return _answered(connection)


def _answered(connection: socket.socket) -> int:
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    answer.read()
    return answer.status


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/healthz", id="probes", marks=pytest.mark.long),
        pytest.param("/v1/nodes", id="questions"),
        pytest.param("", id="silent"),
    ],
)
def test_idle_connections_keep_nobody_out(scorer: FakeScorer, path: str) -> None:
    with (
        served(create_app(scorer, hot=HOT_SHARE), with_constants(ServerOptions(port=0), connections=10)) as url,
        contextlib.ExitStack() as held,
    ):
        for _ in range(30):
            idle = held.enter_context(socket.create_connection(_address(url), timeout=20))
            assert not path or _asked(idle, path) == 200
        for asked in ("/healthz", "/readyz", "/v1/nodes"):
            assert httpx.get(f"{url}{asked}", timeout=20).status_code == 200


def test_strangers_make_room_before_those_who_were_let_in(scorer: FakeScorer) -> None:
    with (
        served(create_app(scorer, hot=HOT_SHARE), with_constants(ServerOptions(port=0), connections=10)) as url,
        contextlib.ExitStack() as held,
    ):
        known, *strangers = (held.enter_context(socket.create_connection(_address(url), timeout=20)) for _ in range(10))
        assert _asked(known, "/v1/nodes") == 200
        for stranger in strangers:
            assert _asked(stranger, "/healthz") == 200
        assert httpx.get(f"{url}/healthz").status_code == 200
        assert strangers[0].recv(100) == b""  # the longest idle one
        assert _asked(strangers[1], "/healthz") == _asked(known, "/v1/nodes") == 200


def test_a_request_at_work_is_not_cut_off_by_new_connections(scorer: FakeScorer) -> None:
    working, go_on = threading.Event(), threading.Event()

    def work() -> None:
        working.set()
        assert go_on.wait(20)

    scorer.fail = work
    with (
        served(create_app(scorer, hot=HOT_SHARE), with_constants(ServerOptions(port=0), connections=3)) as url,
        contextlib.ExitStack() as held,
    ):
        answers: list[int] = []
        asking = held.enter_context(socket.create_connection(_address(url), timeout=20))
        thread = threading.Thread(target=lambda: answers.append(_asked(asking, "/v1/nodes")))
        thread.start()
        assert working.wait(20)
        for _ in range(10):
            probe = held.enter_context(socket.create_connection(_address(url), timeout=20))
            assert _asked(probe, "/healthz") == 200
        go_on.set()
        thread.join(20)
        assert answers == [200]


@pytest.mark.parametrize(
    "start",
    [
        b"GET /v1/nodes HTTP/1.1\r\nX-Long: ",
        b"GET /v1/nodes?",
        b"POST /v1/scores HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Trailer: ",
    ],
    ids=["header", "path", "trailer"],
)
def test_a_client_whose_header_does_not_end_is_hung_up_on_before_it_fills_the_memory(
    scorer: FakeScorer, start: bytes
) -> None:
    piece = b"x" * 65_536
    with (
        served(create_app(scorer, hot=HOT_SHARE)) as url,
        socket.create_connection(_address(url), timeout=20) as endless,
    ):
        endless.sendall(start)
        with pytest.raises(ConnectionError):
            _send(endless, piece * 400)  # 25 MiB: more than all buffers on the way
        assert httpx.get(f"{url}/healthz").status_code == 200


def _send(connection: socket.socket, content: bytes) -> None:
    for at in range(0, len(content), 65_536):
        connection.sendall(content[at : at + 65_536])


def _chunked(size: int, count: int) -> bytes:
    """A body of spaces in chunks of this size."""
    head = b"POST /v1/scores HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    head += b"Transfer-Encoding: chunked\r\n\r\n"
    return head + (b"%x\r\n%s\r\n" % (size, b" " * size)) * count + b"0\r\n\r\n"


def test_chunks_are_read_unless_they_are_mostly_frames_or_answers_are_not_awaited(scorer: FakeScorer) -> None:
    with served(create_app(scorer, hot=HOT_SHARE)) as url, socket.create_connection(_address(url), timeout=20) as slow:
        slow.sendall(_chunked(100, 20_000))
        assert slow.recv(100).startswith(b"HTTP/1.1 400 ")  # spaces are no JSON
    with (
        served(create_app(scorer, hot=HOT_SHARE)) as url,
        socket.create_connection(_address(url), timeout=20) as slow,
        pytest.raises(ConnectionError),
    ):
        _send(slow, _chunked(1, 4_000_000))  # more than all buffers on the way
    ask, last = b"GET /page.js HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /page.js HTTP/1.1\r\nConnection: close\r\n\r\n"
    with served(create_app(scorer, hot=HOT_SHARE)) as url, socket.create_connection(_address(url), timeout=20) as hasty:
        received = b""
        with contextlib.suppress(ConnectionError):
            hasty.sendall(ask * 1000 + last)
            while part := hasty.recv(2**20):
                received += part
        assert received.count(b"HTTP/1.1 200 OK") < 1000


def test_an_open_path_waits_for_no_body(scorer: FakeScorer) -> None:
    with served(create_app(scorer, hot=HOT_SHARE)) as url, socket.create_connection(_address(url), timeout=5) as slow:
        slow.sendall(b"GET /page.js HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
        assert _answered(slow) == 200
        slow.sendall(b"x" * 10)
        assert _asked(slow, "/healthz") == 200  # the body was not taken for a request
