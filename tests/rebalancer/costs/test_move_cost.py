"""What a move costs, part by part."""

from __future__ import annotations

from typing import Any

import pytest

from forecast.service_key import Owner, ServiceKey
from kube.objects.objects import QosClass
from rebalancer.costs.move_cost import is_insensitive
from rebalancer.costs.move_facts import StartupTime
from rebalancer.rebalance_settings import UnforeseenOptions
from tests.rebalancer.costs.movable import NIGHT, cost, facts, pod

NOW = NIGHT.timestamp()
NOTHING: dict[str, Any] = {"move": 0, "startup": 0, "share": 0, "priority": 0, "qos": 0, "young": 0, "lost_hour": 0}
JOB = ServiceKey("shop", "Job", "report")


def of_job(**fields: Any) -> Any:
    known = {"service": JOB, "replicas": 1, "ready_replicas": 1, "remaining_seconds": 48 * 3600.0}
    return facts(**(known | fields))


@pytest.mark.parametrize(
    ("pod_fields", "fact_fields", "options", "expected"),
    [
        ({}, {}, {"move": 0.3}, 0.3),
        ({}, {"startup": StartupTime(900, 4)}, {"startup": 2}, 1.0),
        ({}, {}, {"startup": 2, "default_startup": 450}, 0.5),
        ({}, {"replicas": 2, "ready_replicas": 2}, {"share": 1}, 0.5),
        ({}, {"replicas": 10, "ready_replicas": 10}, {"share": 1}, 0.1),
        ({"priority": 999_999_999}, {}, {"priority": 3}, 3.0),
        ({"priority": 999}, {}, {"priority": 3}, 1.0),
        ({"priority": 0}, {}, {"priority": 3}, 0.0),
        ({"priority": -100}, {}, {"priority": 3}, 0.0),
        ({"qos": QosClass.GUARANTEED}, {}, {"qos": 1}, 1.0),
        ({"qos": QosClass.BURSTABLE}, {}, {"qos": 1}, 0.5),
        ({"qos": QosClass.BEST_EFFORT}, {}, {"qos": 1}, 0.0),
        ({"created": NOW - 3600}, {}, {"young": 1, "young_for": 4 * 3600}, 0.75),
        ({"created": NOW - 4 * 3600}, {}, {"young": 1, "young_for": 4 * 3600}, 0.0),
        ({"created": NOW - 3600}, {}, {"young": 1, "young_for": 0}, 0.0),
    ],
)
def test_one_part(
    pod_fields: dict[str, Any], fact_fields: dict[str, Any], options: dict[str, Any], expected: float
) -> None:
    found = cost(pod(**pod_fields), facts(**fact_fields), **(NOTHING | options))
    assert found.cost == pytest.approx(expected, abs=1e-8)


def test_a_long_job_costs_the_work_it_loses() -> None:
    running = pod(owner=Owner("Job", "report"), started=NOW - 5 * 3600)
    assert cost(running, of_job(), **(NOTHING | {"lost_hour": 0.5})).cost == pytest.approx(2.5)
    found = cost(running, of_job())
    assert "Job" in found.because
    assert cost(running, facts(), **(NOTHING | {"lost_hour": 0.5})).cost == 0  # of a service nothing is lost


def test_the_largest_part_is_the_reason() -> None:
    assert cost(pod(created=NOW - 700)).because == "its age"
    assert cost(about=facts(startup=StartupTime(3000, 5))).because == "its start-up time"
    assert cost(pod(priority=1_000_000)).because == "its priority"


SMALL = {"qos": QosClass.BURSTABLE, "priority": -10}


@pytest.mark.parametrize(
    ("pod_fields", "fact_fields", "insensitive"),
    [
        ({}, {}, True),
        ({"priority": 1}, {}, False),
        ({"qos": QosClass.GUARANTEED}, {}, False),
        ({}, {"replicas": 3, "ready_replicas": 3}, True),
        ({}, {"replicas": 2, "ready_replicas": 2}, False),
        ({}, {"startup": StartupTime(3000, 5)}, False),
        ({"annotations": {"forecast-scheduler.io/rebalance": "rather-not"}}, {}, False),
        ({"annotations": {"forecast-scheduler.io/rebalance": "never"}}, {}, False),
        ({"annotations": {"karpenter.sh/do-not-disrupt": "true"}}, {}, False),
        ({"local_volumes": ("a",)}, {}, False),
    ],
)
def test_insensitive_pods(pod_fields: dict[str, Any], fact_fields: dict[str, Any], insensitive: bool) -> None:
    one, about = pod(**(SMALL | pod_fields)), facts(**fact_fields)
    assert is_insensitive(one, about, cost(one, about), UnforeseenOptions()) == insensitive


def test_jobs_and_single_replicas_are_never_insensitive() -> None:
    running = pod(**SMALL, owner=Owner("Job", "report"), started=NOW - 60)
    options, about = UnforeseenOptions(), of_job(ready_replicas=5)
    assert cost(running, about).may_move and not is_insensitive(running, about, cost(running, about), options)
    single = pod(**SMALL, annotations={"forecast-scheduler.io/move-by-surge": "true"})
    alone = facts(replicas=1, ready_replicas=3)
    assert cost(single, alone).by_surge and not is_insensitive(single, alone, cost(single, alone), options)
