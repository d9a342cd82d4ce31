from __future__ import annotations

from scheduler.metrics import SchedulingMetrics
from testing.app_client import AppClient
from tests.scheduler.service.simple_scheduling import SimpleScheduling
from tests.scorer.service.fake_scorer import FakeScorer


def test_it_is_alive_while_the_loop_goes_round(client: AppClient, scheduling: SimpleScheduling) -> None:
    assert client.get("/healthz").json() == {"ok": True}
    scheduling.change(is_alive=False, since_cycle=95.2)
    answer = client.get("/healthz")
    assert answer.status_code == 503
    assert "has not gone round for 95 s: restart this process" in answer.json()["error"]


def test_it_is_ready_once_the_cluster_was_read(client: AppClient, scorer: FakeScorer) -> None:
    scorer.ready = False
    answer = client.get("/readyz")
    assert answer.status_code == 503 and "pods have not been listed yet" in answer.json()["error"]
    status = client.get("/v1/status").json()
    assert status["ready"] is False and "pods have not been listed yet" in status["not_ready_because"]
    scorer.ready = True
    assert client.get("/readyz").status_code == 200
    scorer.ready = False  # stale tables are the degradation ladder's matter
    assert client.get("/readyz").status_code == 200


def test_what_only_the_loops_read_has_to_be_there_too(client: AppClient, scheduling: SimpleScheduling) -> None:
    scheduling.change(waits_for="poddisruptionbudgets have not been listed: 403")
    answer = client.get("/readyz")
    assert answer.status_code == 503 and "poddisruptionbudgets have not been listed: 403" in answer.json()["error"]
    assert client.get("/v1/status").json()["ready"] is False


def test_a_replica_that_waits_for_the_lease_is_ready(client: AppClient, scheduling: SimpleScheduling) -> None:
    scheduling.change(is_leader=False, leader="replica-2")
    assert client.get("/readyz").status_code == 200
    scheduling.change(election_error="leases.coordination.k8s.io is forbidden (403)")
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["error"] == ("this replica could not take over: leases.coordination.k8s.io is forbidden (403)")
    scheduling.change(is_leader=True)  # it still has it, and another try may succeed
    assert client.get("/readyz").status_code == 200


def test_it_says_so_while_it_ends(client: AppClient) -> None:
    client.app.state.service.draining = True
    answer = client.get("/readyz")
    assert answer.status_code == 503 and "shutting down" in answer.json()["error"]
    assert client.get("/healthz").status_code == 200
    assert client.get("/v1/status").json()["ready"] is False


def test_the_status_is_that_of_the_scorer_and_of_the_loops(client: AppClient) -> None:
    status = client.get("/v1/status").json()
    assert status["ready"] is True and status["not_ready_because"] is None
    assert (status["level"], status["pods"]) == (0, 612)
    assert status["scheduling"] == {
        "alive": True,
        "dry_run": False,
        "leading": True,
        "leader": "replica-1",
        "election_error": None,
        "waits_for": None,
        "gang_wait_seconds": 90.0,
        "profiles": {"online": "forecast-scheduler"},
        "pending": {"active": 1, "backoff": 0, "unschedulable": 2, "gated": 0},
        "bindings_in_flight": 4,
        "assumed_pods": 6,
        "gangs": {"Pending": 1},
        "loop_age_seconds": 0.25,
    }


def test_stages_of_the_loops_and_of_the_routes_are_one_metric(client: AppClient, metrics: SchedulingMetrics) -> None:
    metrics.observe_stage("cycle", 0.001)
    client.post("/v1/explain", json={"pod": {"namespace": "shop", "name": "cart-1"}})
    text = client.get("/metrics").text
    assert text.count("# TYPE forecast_scheduling_duration_seconds histogram") == 1
    assert 'forecast_scheduling_duration_seconds_count{stage="cycle"} 1.0' in text
    assert 'forecast_scheduling_duration_seconds_count{stage="explain"} 1.0' in text
    assert 'forecast_pending_pods{queue="unschedulable"} 2.0' in text and "forecast_node_predicted_peak" in text


def test_nobody_else_says_where_our_pods_go(client: AppClient, scorer: FakeScorer) -> None:
    body = {"pod": {"namespace": "shop", "name": "cart-1"}, "node": "node-01", "seconds": 2}
    assert client.post("/v1/charges", json=body).status_code == 404
    assert client.post("/v1/scores", json=body).status_code == 404
    assert scorer.asked == [] and scorer.charged == []
