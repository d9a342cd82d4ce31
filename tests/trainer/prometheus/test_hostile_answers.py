"""A server whose answers would take all memory: what is read of them is bounded before it is decoded."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

HEAD = b'{"status":"success","data":{"resultType":"matrix","result":['
SERIES = b'{"metric":{"namespace":"shop","pod":"cart"},"values":[[1700000000,"0.5"],[1700000300,"0.25"]]}'
MOST_MIB = 450
"""For one answer of 128 MiB in memory; the interpreter and its libraries take 60."""

CLIENT = """
import resource, sys, threading
from datetime import UTC, datetime
from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.prometheus_settings import ConnectionOptions

connection = PrometheusConnection(sys.argv[1], ConnectionOptions(patience=0.1))
start, end = (datetime.fromtimestamp(t, UTC) for t in (1700000000, 1700000300))
said = []

def ask():
    try:
        found = connection.range("pod_cpu", "up", start, end, 300)
        said.append(f"{len(found.labels)} series of {len(found.values)} samples")
    except Exception as error:
        said.append(f"{type(error).__name__}: {error}")

threads = [threading.Thread(target=ask) for _ in range(int(sys.argv[2]))]
for one in threads:
    one.start()
for one in threads:
    one.join()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, *said, sep="\\n")
"""


@contextmanager
def _server(pieces: list[tuple[bytes, int]], status: int = 200) -> Iterator[str]:
    """Sends each piece so many times, gzipped. Members of gzip one after the other are one stream."""
    members = [(gzip.compress(text, 1), times) for text, times in pieces]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            try:
                for member, times in members:
                    for _ in range(times):
                        self.wfile.write(member)
            except OSError:
                pass  # the client has hung up

        def log_message(self, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _asked(url: str, times: int = 1) -> tuple[int, list[str]]:
    """Peak memory in MiB of a process that asks so many times at once, and what it got."""
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, url, str(times)], capture_output=True, text=True, check=True, timeout=120
    )
    peak, *said = done.stdout.splitlines()
    return int(peak), said


def _many(text: bytes, times: int = 10_000) -> bytes:
    return text * times


@pytest.mark.parametrize(
    ("pieces", "times", "said"),
    [
        pytest.param(
            [(HEAD + SERIES, 1), (_many(b"," + SERIES), 500), (b"]}}", 1)],
            4,
            "the answer is larger than 134,217,728 bytes, the most that is read of one",
            id="500 MB of honest series, four times at once",
        ),
        pytest.param(
            [(HEAD + b'{"metric":{},"values":[]}', 1), (_many(b',{"metric":{},"values":[]}'), 400), (b"]}}", 1)],
            1,
            "its answer has more than 500,000 series, the most that is read of one",
            id="millions of empty series",
        ),
        pytest.param([(HEAD, 1), (_many(b"["), 8_000)], 1, "more than 4,500,000 samples", id="nested lists"),
        pytest.param([(HEAD + b"0", 1), (_many(b",0"), 4_000), (b"]}}", 1)], 1, "no list of series", id="numbers"),
        pytest.param(
            [(HEAD + b'{"metric":{},"values":[[1,"1"]', 1), (_many(b',[1,"1"]'), 100), (b"]}]}}", 1)],
            1,
            "a series of 8,000,030 bytes, allowed are 4,194,304",
            id="one series of a million samples",
        ),
    ],
)
def test_an_answer_takes_no_more_memory_than_is_set_aside_for_it(
    pieces: list[tuple[bytes, int]], times: int, said: str
) -> None:
    with _server(pieces) as url:
        peak, found = _asked(url, times)
    assert len(found) == times and all(said in one for one in found), found
    assert peak < MOST_MIB + (200 if times > 1 else 0), peak


def test_a_large_honest_answer_is_read_in_pieces() -> None:
    with _server([(HEAD + SERIES, 1), (_many(b"," + SERIES), 20), (b"]}}", 1)]) as url:
        assert _asked(url)[1] == ["200001 series of 400002 samples"]


def test_the_body_of_a_redirect_is_not_read() -> None:
    with _server([(_many(b" ", 2**20), 10_000)], status=302) as url:
        peak, (said,) = _asked(url)
    assert "redirects" in said and peak < 100, (peak, said)


def test_a_series_that_is_cut_off_in_a_large_answer_is_foreign() -> None:
    broken = json.dumps({"metric": {"a": "b"}}).encode()[:-1] + b',"values":[[1,"1",]]}'
    with _server([(HEAD + broken, 1), (_many(b"," + SERIES), 2), (b"]}}", 1)]) as url:
        assert "cut off or foreign, not a Prometheus API" in _asked(url)[1][0]
