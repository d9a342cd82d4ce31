"""The metrics store is found in the layouts of the known charts, and never taken if it does not know the nodes."""

from __future__ import annotations

import random
import threading

import pytest

from forecast_scheduler.discovery.api_server_transport import proxied_url, store_words
from forecast_scheduler.discovery.known_nodes import KnownNodes
from forecast_scheduler.discovery.ranking import StoreCandidate, rank_services
from forecast_scheduler.discovery.services import services_of
from forecast_scheduler.discovery.store_search import MOST_ASKED, Pace, Probe, search
from tests.forecast_scheduler.discovery.fresh_layouts import FRESH
from tests.forecast_scheduler.discovery.layouts import BESIDE, LAYOUTS, Layout, Service, listing, service
from trainer.prometheus.http_answer import NoPrometheusApi

ALL, NONE = KnownNodes(50, 50, 0), KnownNodes(0, 50, 3)


def ranked(services: list[Service], seed: int = 0) -> list[StoreCandidate]:
    random.Random(seed).shuffle(services)
    found, token = services_of(listing(services))
    assert token == ""
    return rank_services(found)


def url(candidate: StoreCandidate, path: str) -> str:
    return f"{candidate.scheme}://{candidate}{path}"


def knowing(nodes: dict[str, KnownNodes], asked: list[str]) -> Probe:
    """Stores at these addresses; all other Services answer 404."""

    def probe(candidate: StoreCandidate, path: str) -> KnownNodes:
        asked.append(url(candidate, path))
        if asked[-1] not in nodes:
            raise NoPrometheusApi("it has no Prometheus API there")
        return nodes[asked[-1]]

    return probe


@pytest.mark.parametrize("layout", [*LAYOUTS, *FRESH], ids=lambda one: one.name)
def test_the_store_of_every_layout_is_found(layout: Layout) -> None:
    asked: list[str] = []
    others = {"http://shop/prometheus:9090": NONE, "http://linkerd-viz/prometheus:9090": NONE}
    result = search(ranked([*BESIDE, *layout.services]), knowing({layout.store: ALL} | others, asked))
    assert result.found is not None, result.in_vain
    assert url(result.found.candidate, result.found.path) == layout.store
    assert len({one.removesuffix("/prometheus") for one in asked}) <= MOST_ASKED


def test_there_are_twenty_layouts() -> None:
    assert len({layout.store for layout in LAYOUTS}) == len(LAYOUTS) == 20


def test_what_stands_beside_a_store_is_not_even_asked() -> None:
    candidates = [str(one) for one in ranked(list(BESIDE))]
    assert candidates == ["linkerd-viz/prometheus:9090", "shop/prometheus:9090", "shop/cart:9090"]


def test_a_store_that_does_not_know_the_nodes_is_never_taken() -> None:
    for layout in LAYOUTS:
        asked: list[str] = []
        result = search(ranked([*BESIDE, *layout.services]), knowing({layout.store: KnownNodes(24, 50, 0)}, asked))
        assert result.found is None
        assert len(result.in_vain) == len({one.rsplit(":", 1)[0] for one in asked}) <= MOST_ASKED


def test_a_store_of_this_cluster_alone_wins_over_one_of_several() -> None:
    layout = next(one for one in LAYOUTS if one.name.startswith("Bitnami Thanos"))
    own, asked = "http://monitoring/prometheus-k8s:9090", list[str]()
    stores = {layout.store: KnownNodes(50, 50, 400), own: KnownNodes(49, 50, 0)}
    result = search(ranked([*BESIDE, *layout.services]), knowing(stores, asked))
    assert result.found is not None and url(result.found.candidate, result.found.path) == own
    assert any("it knows 50 of 50 nodes, and 400 that the cluster does not have" in line for line in result.in_vain)
    # Where there is none, the one of several is taken: `train` then asks for prometheus.cluster.
    result = search(ranked([*BESIDE, *layout.services]), knowing({layout.store: KnownNodes(50, 50, 400)}, asked))
    assert result.found is not None and result.found.nodes.others == 400


def test_the_order_of_services_does_not_matter() -> None:
    services = [*BESIDE, *(one for layout in LAYOUTS for one in layout.services)]
    orders = {tuple(str(one) for one in ranked(list(services), seed)) for seed in range(5)}
    assert len(orders) == 1


def test_those_that_hang_do_not_keep_the_others_waiting() -> None:
    """Five hang in the worst case: the search ends all the same, and says so of each that was asked."""
    over = threading.Event()
    candidates = ranked(
        [service(f"monitoring/prometheus-{one}", {"web": 9090}, name="prometheus") for one in "abcdefg"]
    )

    def probe(candidate: StoreCandidate, path: str) -> KnownNodes:
        if candidate is not candidates[3]:
            over.wait(60)
        return ALL

    pace = Pace(in_all=0.5, between=0.01, for_better=0.01)
    result = search(candidates, probe, pace)
    assert result.found is not None and result.found.candidate is candidates[3]
    assert sum("did not answer within" in line for line in result.in_vain) >= 3
    result = search(candidates[:3], probe, pace)
    assert result.found is None and len(result.in_vain) == 3
    over.set()


def test_a_better_store_that_answers_a_little_later_is_taken() -> None:
    second_answered = threading.Event()
    candidates = ranked([service(f"monitoring/{one}", {"web": 9090}) for one in ("thanos-query", "prometheus-k8s")])

    def probe(candidate: StoreCandidate, path: str) -> KnownNodes:
        if candidate is candidates[0]:
            assert second_answered.wait(30)
        else:
            second_answered.set()
        return ALL

    result = search(candidates, probe, Pace(in_all=60, between=0.01, for_better=30))
    assert result.found is not None and result.found.candidate.service.name == "thanos-query"


def test_outside_and_inside_a_store_has_another_address() -> None:
    openshift = next(one for one in LAYOUTS if one.name == "OpenShift")
    first = ranked(list(openshift.services))[0]
    assert first.address == "https://thanos-querier.openshift-monitoring.svc:9091"
    proxy = "https://api:6443/api/v1/namespaces/openshift-monitoring/services/https:thanos-querier:9091/proxy"
    assert proxied_url("https://api:6443", first) == proxy
    assert store_words(f"{proxy}/select/0") == "openshift-monitoring/thanos-querier:9091/select/0"
    assert store_words("http://prometheus:9090") == "http://prometheus:9090"


def test_services_without_a_port_that_answers_are_left_out() -> None:
    external = {"metadata": {"namespace": "monitoring", "name": "prometheus"}, "spec": {"type": "ExternalName"}}
    assert ranked([external, service("monitoring/thanos-query", {"grpc": 10901}, name="thanos")]) == []
