"""What one object says fails that object alone: among 500 honest ones, these come out as without it."""

from __future__ import annotations

import asyncio
import base64
import copy
import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.templates.template_decoding import BINDINGS, NODE_CONFIGS, POD_CONFIGS
from admission.webhook.recorded_pods import POD_RECORDS
from autoscaling.autoscale_settings import BufferOptions, GuardOptions, RequestOptions, ResizeOptions
from autoscaling.nodes.buffers import buffers
from autoscaling.nodes.guard import marks
from autoscaling.nodes.guard_hand import nodes_now
from autoscaling.requests.pod_resources import ORIGINAL, PROOF, RESIZE_LABEL, RESIZED_LABEL
from autoscaling.requests.resize_hand import ResizeHand
from autoscaling.services_ahead import services_ahead
from base.excluded import ExcludedOptions
from base.local_hours import ChangeWindows
from forecast.hot_share import HOT_SHARE
from forecast.service_key import ServiceKey
from kube.client.api_answer import ApiAnswer
from kube.decoding.decoding import WATCHED, Kind
from kube.decoding.watched_kinds import Watched, decode_page
from placement.disruption_budgets import WATCHED_BUDGETS
from placement.reservations.watched_reservations import WATCHED_RESERVATIONS
from profiles.gpu.dra.dra_decoding import WATCHED_CLAIMS
from profiles.job.cron.cron_jobs import WATCHED_CRON_JOBS
from rebalancer.execution.wire_seen import deployment_seen
from scheduler.gangs.group_decoding import POD_GROUPS
from tenants.elastic_quota import WATCHED_QUOTAS
from testing.constants import with_constants
from tests.autoscaling.live_services import PODS
from tests.autoscaling.requests.made_up_ahead import at, evening_ahead
from tests.contracts.absurd import ANNOTATIONS, VALUES, absurd, honest
from tests.scorer.live_cluster import at as hour_of_day
from tests.scorer.live_cluster import growing, pod_of
from tests.scorer.scorer_at import LiveScorer

READERS: Final[tuple[Watched[Any], ...]] = (
    *(WATCHED[kind] for kind in (Kind.PODS, Kind.REPLICA_SETS, Kind.JOBS, Kind.CLAIMS)),
    POD_RECORDS, WATCHED_BUDGETS, WATCHED_CRON_JOBS, WATCHED_CLAIMS, WATCHED_QUOTAS, WATCHED_RESERVATIONS, POD_GROUPS,
    NODE_CONFIGS, POD_CONFIGS, BINDINGS,
)  # fmt: skip
N: Final = 500
Manifest = dict[str, Any]


@cache
def _read_alone(number: int) -> tuple[list[bytes], list[Any]]:
    """Honest objects, and what a reader makes of them."""
    reader = READERS[number]
    made = json.dumps(next(one for one in honest() if one["kind"] == reader.singular)).encode()
    page = decode_page(reader, _list([made] * N))
    assert len(page.objects) == N, page.undecodable[:1]
    return [made] * N, page.objects


@given(data=st.data())
def test_every_list_is_read_but_for_the_absurd_one(data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(READERS) - 1))
    reader = READERS[number]
    others, alone = _read_alone(number)
    one = data.draw(st.sampled_from([one for one in honest() if one["kind"] == reader.singular]).flatmap(absurd))
    page = decode_page(reader, _list([*others[: N // 2], one, *others[N // 2 :]]))
    assert page.objects[: N // 2] + page.objects[-(N - N // 2) :] == alone
    assert len(page.objects) + len(page.undecodable) == N + 1


def _list(items: list[bytes]) -> bytes:
    return b'{"items": [' + b",".join(items) + b"]}"


# Requests of pods

CART: Final = ServiceKey("shop", "ReplicaSet", "cart")
ASKS: Final = {RESIZE_LABEL: "true"}


def _pod(number: int) -> Manifest:
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    owner = {"kind": "ReplicaSet", "name": "cart", "uid": "rs", "controller": True}
    metadata = {"namespace": "shop", "name": f"cart-{number}", "uid": f"u{number}", "resourceVersion": "1"}
    return {
        "metadata": metadata | {"labels": ASKS, "annotations": {}, "ownerReferences": [owner]},
        "spec": {"nodeName": f"n{number % 10}", "containers": [{"name": "main", "resources": resources}]},
        "status": {"phase": "Running", "qosClass": "Burstable"},
    }


class _ApiServer:
    """What ResizeHand asks of one, with pods as bytes: those of `absurd` never change."""

    def __init__(self, n_pods: int, absurd_pod: bytes | None) -> None:
        self.pods = {f"cart-{number}": _pod(number) for number in range(n_pods)}
        self._absurd = [] if absurd_pod is None else [absurd_pod]

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "", seconds: float
    ) -> ApiAnswer:
        place = urlsplit(path)
        if "/secrets/" in path:
            return ApiAnswer(200, json.dumps({"data": {"key": base64.b64encode(b"k" * 32).decode()}}).encode())
        if place.path == "/api/v1/namespaces":
            return ApiAnswer(200, b'{"items": []}')
        if place.path == "/api/v1/pods":
            label = parse_qs(place.query)["labelSelector"][0].split("=")[0]
            found = [json.dumps(one).encode() for one in self.pods.values() if label in one["metadata"]["labels"]]
            return ApiAnswer(200, _list([*found[:20], *self._absurd, *found[20:]]))
        name = unquote(place.path.removesuffix("/resize").rsplit("/", 1)[1])
        if name not in self.pods:
            return ApiAnswer(500 if self._absurd else 404, text="an absurd pod is written")
        assert body is not None
        pod, change = self.pods[name], json.loads(body)
        for field in ("annotations", "labels"):
            merged = pod["metadata"][field] | change["metadata"].get(field, {})
            pod["metadata"][field] = {key: value for key, value in merged.items() if value is not None}
        for container in change.get("spec", {}).get("containers", ()):
            pod["spec"]["containers"][0]["resources"]["requests"] |= container["resources"]["requests"]
        return ApiAnswer(200, json.dumps(pod).encode())


def _lived_through(absurd_pod: bytes | None, n_pods: int = 40) -> list[Mapping[str, Manifest]]:
    """The honest pods after a resize by night, and after all was taken back."""
    server = _ApiServer(n_pods, absurd_pod)
    options = RequestOptions(resize=with_constants(ResizeOptions(), enabled=True, service_share=1.0, parallel=1000))
    free = {f"n{i}": (1000.0, 2.0**50) for i in range(10)}
    left_alone, always = ExcludedOptions(), ChangeWindows()
    hand = ResizeHand(server, options, free=lambda: free, hot=HOT_SHARE, excluded=left_alone, changes=always)
    seen: list[Mapping[str, Manifest]] = []
    for work in (hand.act(evening_ahead((CART,), replicas=n_pods + 1.0), at(3)), hand.retreat()):
        try:
            asyncio.run(work)
        except Exception as error:  # it may be told, and hinder nobody
            assert "pod" in str(error)  # noqa: PT017
        seen.append(copy.deepcopy(server.pods))
    return seen


@pytest.fixture(scope="module")
def alone() -> list[Mapping[str, Manifest]]:
    by_night, after = found = _lived_through(None)
    assert by_night["cart-7"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "200m"
    assert after["cart-7"] == _pod(7) | {"spec": after["cart-7"]["spec"]}
    assert after["cart-7"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1"
    return found


ABSURD_POD: Final = {
    **_pod(N),
    "metadata": {
        **_pod(N)["metadata"],
        "labels": ASKS | {RESIZED_LABEL: "true"},
        "annotations": ANNOTATIONS | {ORIGINAL: '{"c":{"cpu":1e308}}', PROOF: "0"},
    },
}


@given(one=absurd(ABSURD_POD))
def test_resizes_and_restores_of_all_others_are_the_same(one: bytes, alone: list[Mapping[str, Manifest]]) -> None:
    assert _lived_through(one) == alone


@pytest.mark.parametrize("cpu", ["1e18", "1e29", "1e31", "-5"])
def test_whatever_it_requests(cpu: str, alone: list[Mapping[str, Manifest]]) -> None:
    absurd_pod = _pod(N)
    absurd_pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    assert _lived_through(json.dumps(absurd_pod).encode()) == alone


def test_among_500() -> None:
    assert _lived_through(json.dumps(ABSURD_POD).encode(), N) == _lived_through(None, N)


# Nodes in time, moves


@pytest.mark.parametrize("cpu", [1e9, 1e15, 1e30])
@pytest.mark.parametrize("number", [4, 5, 7])
def test_nodes_are_kept_and_buffers_made_as_without_a_pod_beyond_all_nodes(cpu: float, number: int) -> None:
    others = [*PODS, pod_of(4, "q", "node-0", cpu=2.0, started=hour_of_day(0))]
    beyond = pod_of(number, "beyond", "node-2", cpu=cpu, started=hour_of_day(0))
    largest = pod_of(number, "beyond", "node-2", cpu=1e3, started=hour_of_day(0))
    assert _nodes_in_time([*others, beyond]) == _nodes_in_time([*others, largest])


def _nodes_in_time(pods: list[Any]) -> object:
    tables = LiveScorer(12.0, pods=pods, model=growing()).scorer.tables
    ahead = services_ahead(tables, ExcludedOptions())
    assert ahead is not None
    now = hour_of_day(18)
    return marks(ahead, nodes_now(tables), now, GuardOptions()), buffers(ahead, now, BufferOptions())


@pytest.mark.parametrize("value", [one for one in VALUES if isinstance(one, str) and one.isprintable()])
def test_a_deployment_says_what_it_likes_of_a_surge(value: str) -> None:
    annotations = {"forecast-scheduler.io/surged-for": f"plan:{value}", "forecast-scheduler.io/move-by-surge": value}
    made = {"metadata": {"name": "cart", "namespace": "shop", "annotations": annotations}, "spec": {"replicas": 3}}
    assert deployment_seen(json.dumps(made).encode(), b'{"items": []}').replicas == 3
