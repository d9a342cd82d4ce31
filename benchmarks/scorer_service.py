"""The scorer service under load: latency of POST /v1/scores, and memory, also while a new model is put in place.

    python -m benchmarks.scorer_service [--nodes 5000] [--pods 100000] [--services 5000] [--rate 50] [--seconds 20]

A made-up cluster (testing/clusters/large_cluster.py) in a server process of its own, asked over loopback by this
one: every request names all nodes and a pod of the next of 50 services, and is sent when it is due, whether or not
earlier ones have been answered. Latency counts from when it was due. In the same run: LeastAllocated by the same
service, and /healthz, which says what the way there and back costs. Then the hottest nodes are listed and the hottest
one is asked about, one request at a time, next to what answered that before: the list of all nodes, and /v1/explain for
one of the pods. Then a new model is published, and requests go on meanwhile.
"""

from __future__ import annotations

import argparse
import http.client
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from benchmarks.harness import command_line, peak_gib
from forecast.hot_share import HOT_SHARE
from forecast.model_artefact import artefact_of
from forecast.published_models import Registry
from testing.clusters.large_cluster import large_cluster
from testing.constants import with_constants
from testing.processes.process_figures import resident_bytes

_SERVICES_ASKED = 50
_CONNECTIONS = 8
_ONE_BY_ONE = 20


def serve(options: argparse.Namespace) -> None:
    """The server process: ends on SIGTERM and then tells its highest memory."""
    from cluster.model_watch import ModelWatch
    from cluster.state_source import StateSource
    from kube.decoding.decoding import Kind
    from scorer.background import ScorerBackground
    from scorer.options import ScorerOptions
    from scorer.scorer import Scorer
    from scorer.service.app import create_app
    from serving.server import serve
    from serving.server_settings import ServerOptions

    made = large_cluster(options.nodes, options.pods, options.services, first_day=datetime.now(UTC).date())
    nodes, pods = made.nodes, made.pods
    del made  # the model comes from the registry, as it would
    scorer = Scorer(
        with_constants(ScorerOptions(), model_every=1.0, self_check_every=1e9),
        source=StateSource(lambda: (True, None, {})),
    )
    scorer.tables.replace(Kind.NODES, nodes)
    scorer.tables.replace(Kind.PODS, pods)
    del nodes, pods
    with ScorerBackground(scorer, ModelWatch(Registry(options.serve))):
        serve(create_app(scorer, hot=HOT_SHARE), ServerOptions(port=0), on_started=lambda url: print(url, flush=True))
    print(f"peak {peak_gib():.2f}", flush=True)


class Client:
    """Sends requests when they are due, over a few connections."""

    def __init__(self, url: str, path: str, bodies: Sequence[bytes]) -> None:
        self._host, self._path, self._bodies = url.removeprefix("http://"), path, bodies

    def run(self, rate: float, seconds: float) -> tuple[list[float], int]:
        """Latencies, and how many were not answered with 200."""
        n = int(rate * seconds)
        latencies, failed = [0.0] * n, [0]
        began = time.perf_counter() + 0.1

        def work(first: int) -> None:
            connection = http.client.HTTPConnection(self._host, timeout=30)
            for i in range(first, n, _CONNECTIONS):
                due = began + i / rate
                time.sleep(max(0.0, due - time.perf_counter()))
                body = self._bodies[i % len(self._bodies)] if self._bodies else None
                connection.request("POST" if body else "GET", self._path, body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                answer.read()
                failed[0] += answer.status != 200
                latencies[i] = time.perf_counter() - due
            connection.close()

        threads = [threading.Thread(target=work, args=(i,)) for i in range(_CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return latencies, failed[0]


def wait_for(url: str, path: str, accept: object, seconds: float = 300.0) -> None:
    """Until a GET is answered as wanted: accept(status, body)."""
    host, deadline = url.removeprefix("http://"), time.monotonic() + seconds
    while time.monotonic() < deadline:
        connection = http.client.HTTPConnection(host, timeout=30)
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if callable(accept) and accept(answer.status, body):
            return
        time.sleep(0.5)
    raise TimeoutError(f"{path} was not answered as expected within {seconds:.0f} s")


def asked(url: str, path: str, body: bytes | None = None) -> bytes:
    """The body of an answer 200."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    connection.request("POST" if body else "GET", path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    said = answer.read()
    connection.close()
    if answer.status != 200:
        raise RuntimeError(f"{path} was answered {answer.status}: {said[:200].decode()}")
    return said


def one_by_one(url: str, path: str, body: bytes | None) -> tuple[list[float], int]:
    """Latencies of requests that follow each other; any failure ends the run."""
    latencies = []
    for _ in range(_ONE_BY_ONE):
        began = time.perf_counter()
        asked(url, path, body)
        latencies.append(time.perf_counter() - began)
    return latencies, 0


def row(name: str, latencies: Sequence[float], failed: int) -> None:
    """One line of the table, in milliseconds."""
    quantiles = 1000 * np.quantile(latencies, [0.5, 0.99, 1.0])
    print(f"  {name:34} {quantiles[0]:8.1f} {quantiles[1]:8.1f} {quantiles[2]:8.1f} {failed:8}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table of latencies and the memory."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--services", type=int, default=5000)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--serve", metavar="MODELS", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        serve(options)
        return
    today = datetime.now(UTC).date()
    made = large_cluster(options.nodes, options.pods, options.services, first_day=today)
    names = [node.name for node in made.nodes]
    services = [made.pods[i] for i in range(_SERVICES_ASKED)]
    bodies = {}
    for score in ("predicted_peak", "least_allocated"):
        bodies[score] = [
            json.dumps(
                {"pod": {"namespace": pod.namespace, "name": pod.name}, "nodes": names, "weights": {score: 1.0}}
            ).encode()
            for pod in services
        ]
    with tempfile.TemporaryDirectory() as models:
        registry = Registry(models)
        registry.publish(artefact_of(made.model, datetime.now(UTC)))
        child = subprocess.Popen(
            [
                *(sys.executable, "-m", "benchmarks.scorer_service", "--serve", models),
                *("--nodes", str(options.nodes), "--pods", str(options.pods), "--services", str(options.services)),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert child.stdout is not None
            url = child.stdout.readline().strip()
            wait_for(url, "/readyz", lambda status, body: status == 200)
            wait_for(url, "/v1/heat-map?top=1", lambda status, body: status == 200 and json.loads(body)["nodes"])
            print(f"{options.nodes} nodes, {options.pods} pods, {options.services} services; ", end="")
            print(f"{options.rate:g} requests/s for {options.seconds:g} s each, ms from when due")
            print(f"  {'request':34} {'median':>8} {'99 %':>8} {'most':>8} {'failed':>8}")
            Client(url, "/v1/scores", bodies["predicted_peak"]).run(options.rate, 2)  # columns are made
            row("/healthz", *Client(url, "/healthz", []).run(options.rate, options.seconds))
            for score in ("least_allocated", "predicted_peak"):
                latencies, failed = Client(url, "/v1/scores", bodies[score]).run(options.rate, options.seconds)
                row(f"/v1/scores, {score}", latencies, failed)
            hottest = json.loads(asked(url, "/v1/nodes?sort=peak&top=1"))["nodes"][0]["name"]
            explain = json.dumps({"pod": {"namespace": services[0].namespace, "name": services[0].name}}).encode()
            for path in ("/v1/nodes", "/v1/nodes?sort=peak&top=10", f"/v1/nodes/{hottest}?top=5"):
                row(path, *one_by_one(url, path, None))
            row("/v1/explain, one pod", *one_by_one(url, "/v1/explain", explain))
            before = resident_bytes(child.pid) / 2**30
            renewed = replace(made.model, usage_dated=made.model.usage_dated * np.float32(1.01))
            publisher = threading.Thread(target=registry.publish, args=(artefact_of(renewed, datetime.now(UTC)),))
            publisher.start()
            latencies, failed = Client(url, "/v1/scores", bodies["predicted_peak"]).run(options.rate, options.seconds)
            publisher.join()
            row("the same while a model is reloaded", latencies, failed)
            version = registry.latest()
            wait_for(url, "/v1/status", lambda status, body: json.loads(body)["model"]["version"] == version)
            child.send_signal(signal.SIGTERM)
            peak = child.stdout.read().split("peak")[-1].strip()
            print(f"memory of the server: {before:.2f} GiB before the reload, {peak} GiB at most")
        finally:
            child.kill()
            child.wait()


if __name__ == "__main__":
    main()
