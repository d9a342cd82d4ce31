"""Prometheus stops, hangs, errs or talks nonsense: one step down the ladder, said so, no slower, and up again."""

from __future__ import annotations

from typing import Any

import pytest

from testing.processes.scenery import N_NODES, Scenery
from testing.processes.scorer_process import Asker, ScorerProcess, eventually
from testing.servers.bad_proxy import BadProxy
from testing.servers.control_plane.tcp_proxy import TcpProxy
from testing.servers.prometheus import PrometheusServer
from tests.processes.conftest import Started


def _status(scorer: ScorerProcess) -> dict[str, Any]:
    return scorer.get("/v1/status")


def _says(scorer: ScorerProcess) -> list[str]:
    """Lines of its log without their reasons: each thing is said once, not at every attempt."""
    return [line.partition(": ")[2].partition(" reason=")[0] for line in scorer.complaints]


def _check_fallen(scorer: ScorerProcess, cluster: Scenery) -> dict[str, Any]:
    """One step down, said so everywhere; returns the status."""
    # Nodes are measured in several requests: the level falls when half of them are lost, so wait for the last, too.
    unmeasured = f"usage is measured on 0 of {N_NODES} nodes"
    assert eventually(lambda: any(one.startswith(unmeasured) for one in _status(scorer)["reasons"]), 15)
    body = {"pod": cluster.pod("any"), "nodes": cluster.nodes[:5]}
    scored = scorer.post("/v1/scores", body)
    assert scored["level"] == 1 and len(set(scored["scores"].values())) > 1
    assert any(one.startswith(unmeasured) for one in scored["reasons"])
    explained = scorer.post("/v1/explain", body)
    assert {one["level"] for one in explained["nodes"]} == {1}
    available = scorer.get("/v1/virtual-available")
    assert {one for row in available["available"] for one in row} == {None}
    return _status(scorer)


def test_a_prometheus_that_stops_is_found_again(start: Started, cluster: Scenery, prometheus: PrometheusServer) -> None:
    scorer = start("--prometheus", prometheus.url)
    assert eventually(lambda: _status(scorer)["level"] == 0)
    with Asker(scorer.url, {"pod": cluster.pod("any")}) as asker:
        prometheus.stop()
        try:
            status = _check_fallen(scorer, cluster)
            assert "cannot be reached" in status["sources"]["usage"]
        finally:
            prometheus.start()
        assert eventually(lambda: _status(scorer)["level"] == 0, 20)
        assert _status(scorer)["sources"]["usage"] == "measured"
    assert asker.failures == []
    assert {answer["level"] for answer in asker.answers} == {0, 1}
    assert _says(scorer) == ["usage cannot be measured", "usage is measured again"]


@pytest.mark.parametrize(("action", "says"), [("500", "500"), ("text", "text/html")])
def test_bad_answers_are_no_measurement(
    start: Started, cluster: Scenery, prometheus: PrometheusServer, action: str, says: str
) -> None:
    behaviour = {"now": "pass"}
    with BadProxy(prometheus.url, lambda number, path: behaviour["now"]) as proxy:
        scorer = start("--prometheus", proxy.url)
        assert eventually(lambda: _status(scorer)["level"] == 0)
        behaviour["now"] = action
        status = _check_fallen(scorer, cluster)
        assert says in status["sources"]["usage"] and status["sources"]["usage"] != "measured"
        behaviour["now"] = "slow"  # half a second per answer is no reason to do without
        assert eventually(lambda: _status(scorer)["level"] == 0, 20)
        assert _says(scorer) == ["usage cannot be measured", "usage is measured again"]


def test_a_prometheus_that_hangs_holds_up_nothing(
    start: Started, cluster: Scenery, prometheus: PrometheusServer
) -> None:
    with TcpProxy(prometheus.port) as proxy:
        scorer = start("--prometheus", proxy.url.replace("https", "http"))
        assert eventually(lambda: _status(scorer)["level"] == 0)
        with Asker(scorer.url, {"pod": cluster.pod("any")}) as asker:
            proxy.freeze()
            _check_fallen(scorer, cluster)
            # The request is given up after ten seconds, and a new connection works.
            assert eventually(lambda: _status(scorer)["level"] == 0, 20)
        assert asker.failures == []
        assert _says(scorer) == ["usage cannot be measured", "usage is measured again"]


def test_a_prometheus_that_is_away_at_the_start_does_not_keep_it_from_serving(
    start: Started, cluster: Scenery, prometheus: PrometheusServer
) -> None:
    prometheus.stop()
    try:
        scorer = start("--prometheus", prometheus.url)
        status = _check_fallen(scorer, cluster)
        assert status["ready"] and status["metrics_age_seconds"] is None
    finally:
        prometheus.start()
    assert eventually(lambda: _status(scorer)["level"] == 0, 30)
