"""Clients that would fill the memory of each service, or keep its event loop busy: it stays within its memory limit,
answers probes and honest clients meanwhile, and has its memory back afterwards."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from testing.processes.attacks import Target, attack
from testing.processes.scenery import Scenery
from testing.processes.scorer_process import ScorerProcess
from testing.processes.webhook_process import Api, Refused, WebhookProcess, plain_pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.prometheus import free_port
from testing.waiting import eventually
from tests.processes.conftest import Started
from tests.processes.floods import MIB, Watch, flood, liveness_probe, memory_limit, rss, settled_rss

SERVICES = ("scorer", "extender", "schedule", "webhook")
PATHS = {"scorer": "/v1/scores", "extender": "/filter", "schedule": "/v1/explain", "webhook": "/mutate"}
LARGEST = {"scorer": 3 * MIB, "extender": 4 * MIB, "schedule": 3 * MIB, "webhook": 3 * MIB}
ATTACKS = ("many_headers", "full_buffers", "handshakes", "values_60", "short_chunks", "pipelined", "garbage")
MOST_LOG = 5_000
"""Bytes during one attack: a line of each kind."""
ANSWERS = 5
"""More of them each flood lets an honest client have."""
MOST_SECONDS = 60.0
"""A flood lasts at most so long until they are there."""


@pytest.fixture
def probe_port() -> int:
    return free_port()


@pytest.fixture
def webhook(plane: ControlPlane, tmp_path: Path, probe_port: int) -> Iterator[WebhookProcess]:
    with Api(plane) as api:
        if not api.crds_are_served():
            api.install_crds()
    settings = {"webhook": {"serving": {"probe_port": probe_port}}}
    with WebhookProcess(tmp_path / "webhook", plane.kubeconfig, settings=settings) as running:
        yield running


@pytest.fixture
def service(request: pytest.FixtureRequest, start: Started, probe_port: int) -> ScorerProcess:
    part = request.param
    if part == "webhook":
        return request.getfixturevalue("webhook")  # type: ignore[no-any-return]
    if part == "schedule":
        with Api(request.getfixturevalue("plane")) as api, suppress(Refused):
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "forecast-scheduler"}}
            api.create(namespace)
    deadline = {"deadline": "10s"} if part == "extender" else {}
    return start(
        command=part, settings={part: {"serving": {"probe_port": probe_port}} | deadline}, forked=False
    )  # memory of its own


@pytest.fixture
def probes(probe_port: int) -> str:
    return f"http://127.0.0.1:{probe_port}"


def _question(part: str, pod: Mapping[str, Any], nodes: list[str]) -> dict[str, Any]:
    match part:
        case "extender":
            return {"Pod": pod, "NodeNames": nodes}
        case "webhook":
            kind = {"group": "", "version": "v1", "kind": "Pod"}
            request = {"uid": "u", "kind": kind, "operation": "CREATE", "namespace": "default", "object": pod}
            return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        case _:
            return {"pod": pod, "nodes": nodes}


def _large(part: str, pod: Mapping[str, Any], size: int) -> bytes:
    """An honest question but for a pod with very many containers."""
    few = len(json.dumps(_question(part, pod, [])))
    one = {"name": "main", "image": "x" * 150, "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}}
    many = [one] * ((size - few) // (len(json.dumps(one)) + 2) - 2)
    body = json.dumps(_question(part, dict(pod) | {"spec": {"containers": many}}, []))
    return body.encode().ljust(size)


def _until_answered(watch: Watch, attacked: Callable[[], object]) -> None:
    """Attack, again and again until an honest client has its answers: a busy machine takes a while."""
    ends = time.monotonic() + MOST_SECONDS
    attacked()
    while watch.answers <= ANSWERS and time.monotonic() < ends:
        attacked()


def _holds(service: ScorerProcess, part: str, watches: Sequence[Watch]) -> None:
    assert max(watch.highest for watch in watches) < memory_limit(part), [watch.highest // MIB for watch in watches]
    # How soon it answers is for benchmarks.attacked_services to say: here other tests have the processors, too.
    timeout, in_succession = liveness_probe(part)
    late = [seconds > timeout for watch in watches for seconds in watch.slow]
    runs = [sum(1 for _ in group) for is_late, group in groupby(late) if is_late]
    assert max(runs, default=0) < in_succession, "the kubelet would have restarted it"
    wrong = [one for watch in watches for one in watch.wrong]
    assert not wrong, (len(wrong), wrong[:3])
    assert all(watch.answers > ANSWERS for watch in watches), [watch.answers for watch in watches]
    assert "Traceback" not in service.log, service.log.partition("Traceback")[2][:4000]


def _memory_comes_back(service: ScorerProcess, before: int) -> bool:
    """Return whether the process has again what it had between two floods of one kind.

    The first flood fills what stays by design: code that is imported late, stacks of threads, the arenas that glibc
    keeps (serving/freed_memory.py). What the second one leaves behind, each further one would. A tenth is for
    fragments: an arena gives back only whole pages.
    """
    return eventually(lambda: rss(service) < 1.1 * before)


def each_service(*usual: str) -> Callable[[Any], Any]:
    """Run a test against each service: those of `usual` with attacks of a second, in the long run all with three.

    What holds is the same code in all of them (serving/): each has its turn with one kind of attack in the usual run.
    """
    long = pytest.mark.long
    cases = [pytest.param(one, one, 1, id=one, marks=() if one in usual else long) for one in SERVICES]
    cases += [pytest.param(one, one, 3, id=f"{one}-long", marks=long) for one in SERVICES]
    return pytest.mark.parametrize(("service", "part", "seconds"), cases, indirect=["service"])


@each_service("scorer", "schedule")
def test_bodies_that_stop_before_their_end_and_floods_of_whole_ones(
    service: ScorerProcess, part: str, cluster: Scenery, probes: str, seconds: float
) -> None:
    pod = plain_pod("any", "any") if part == "webhook" else cluster.pod("any")
    question, path = _question(part, pod, cluster.nodes[:5]), PATHS[part]
    large = _large(part, pod, LARGEST[part])
    expected = service.post(path, question)

    def flooded() -> list[Watch]:
        """Return what was seen of 200 slow clients, and of 60 that send everything."""
        with Watch(service, probes, path, question) as slow:
            _until_answered(slow, lambda: flood(service.url, path, large, clients=200, unsent=1, seconds=seconds))
        with Watch(service, probes, path, question) as whole:
            _until_answered(whole, lambda: flood(service.url, path, large, clients=60, unsent=0, seconds=seconds))
        return [slow, whole]

    watches = flooded()
    before = settled_rss(service)
    _holds(service, part, watches + flooded())
    assert _memory_comes_back(service, before), f"{before / MIB:.0f}, {rss(service) / MIB:.0f} MiB"
    assert service.post(path, question).keys() == expected.keys()


@each_service("extender", "webhook")
def test_floods_of_connections_headers_and_values(
    service: ScorerProcess, part: str, cluster: Scenery, probes: str, seconds: float
) -> None:
    pod = plain_pod("any", "any") if part == "webhook" else cluster.pod("any")
    question, path = _question(part, pod, cluster.nodes[:5]), PATHS[part]
    frame = json.dumps(_question(part, {}, [])).replace("{}", "%s")
    port = int(service.url.rpartition(":")[2])
    target = Target("127.0.0.1", port, path, "/metrics", LARGEST[part], tls=part == "webhook", frame=frame)
    expected = service.post(path, question)

    def flooded() -> list[Watch]:
        watches = []
        for name in ATTACKS:
            logged = len(service.log)
            with Watch(service, probes, path, question) as watch:
                _until_answered(watch, lambda name=name: attack(name, target, seconds))  # type: ignore[misc]
            watches.append(watch)
            assert len(service.log) - logged < MOST_LOG, service.log[logged:][:3000]
        return watches

    watches = flooded()
    before = settled_rss(service)
    _holds(service, part, watches + flooded())
    assert _memory_comes_back(service, before), f"{before / MIB:.0f}, {rss(service) / MIB:.0f} MiB"
    assert service.post(path, question).keys() == expected.keys()
