"""What a node or a service used in the last days, in half hours, as recording rules have it on a real Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from base.errors import ForecastError
from forecast.resources import CPU, LOG, MEMORY, RESOURCES
from forecast.service_key import ServiceKey
from forecast_scheduler.commands.scorer.usage_sources import PrometheusUsage
from testing.servers.openmetrics import write_blocks
from testing.servers.prometheus import PrometheusServer
from tests.trainer.prometheus.scrapes import Scrapes
from trainer.prometheus.live_usage import LiveUsage
from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.queries import Queries


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveUsage, datetime]]:
    """Four hours of records of two replicas, as rules make them: in half hour k a node uses k, a pod of cart 10 k."""
    scrapes = Scrapes()

    def half_hour(times: Any) -> Any:
        # What is recorded at T is the mean of the five minutes before.
        return (times - 10) // 1800

    for replica in ("a", "b"):
        twice: dict[str, Any] = {"prometheus_replica": replica}
        for node, factor in (("n1", 1), ("n2", 100)):
            for resource in ("cpu", "log"):
                scrapes.gauge(
                    "forecast:node_usage", lambda t, f=factor: f * half_hour(t), node=node, resource=resource, **twice
                )
        for namespace, pod in (("shop", "cart-5d9c7b6f4d-abcde"), ("shop", "cart-5d9c7b6f4d-fghij"), ("pay", "cart-0")):
            where: dict[str, Any] = {"namespace": namespace, "pod": pod, "resource": "cpu"}
            scrapes.gauge("forecast:pod_usage", lambda t: 10 * half_hour(t), **where, **twice)
        other: dict[str, Any] = {"namespace": "shop", "pod": "cart-db-5d9c7b6f4d-abcde", "resource": "cpu"}
        scrapes.gauge("forecast:pod_usage", 5000, **other, **twice)
    directory = tmp_path_factory.mktemp("history")
    write_blocks(scrapes.series, directory)
    with PrometheusServer(directory) as server:
        yield (
            LiveUsage(PrometheusConnection(server.url), Queries(), window_seconds=300),
            datetime(2026, 3, 2, tzinfo=UTC),
        )


def test_a_node_in_half_hours_under_any_of_its_names(history: tuple[LiveUsage, datetime]) -> None:
    live, midnight = history
    found = live.node_history(["n1", "10.0.0.1", "n1.example"], midnight, midnight + timedelta(hours=5))
    assert found.shape == (len(RESOURCES), 10)
    assert found[CPU][:8] == pytest.approx(np.arange(8.0), abs=1e-9)
    assert found[LOG][:8] == pytest.approx(np.arange(8.0), abs=1e-9)
    assert np.isnan(found[MEMORY]).all() and np.isnan(found[:, 9]).all()
    later = live.node_history(["n2"], midnight + timedelta(hours=1), midnight + timedelta(hours=2))
    assert later[CPU] == pytest.approx([200, 300])
    assert np.isnan(live.node_history(["n1x", "n."], midnight, midnight + timedelta(hours=1))).all()  # names, no regex
    assert live.node_history(["n1"], midnight, midnight).shape == (len(RESOURCES), 0)
    with pytest.raises(ForecastError, match="name the node"):
        live.node_history([], midnight, midnight + timedelta(hours=1))


def test_a_service_is_all_its_pods_and_no_others(history: tuple[LiveUsage, datetime]) -> None:
    live, midnight = history
    source, until = PrometheusUsage(live), midnight + timedelta(hours=4)
    cart = source.service_history(ServiceKey("shop", "Deployment", "cart"), [], midnight, until)
    assert cart[CPU] == pytest.approx(20 * np.arange(8.0), abs=1e-6)
    assert np.isnan(cart[MEMORY]).all()
    alone = source.service_history(ServiceKey("pay", "StatefulSet", "cart"), [], midnight, until)
    assert alone[CPU] == pytest.approx(10 * np.arange(8.0), abs=1e-6)
    unusual = source.service_history(ServiceKey("shop", "Widget", "w"), ["cart-5d9c7b6f4d-abcde"], midnight, until)
    assert unusual[CPU] == pytest.approx(10 * np.arange(8.0), abs=1e-6)
    nobody = source.service_history(ServiceKey("shop", "Widget", "w"), [], midnight, until)
    assert np.isnan(nobody).all()
