"""What is lent by the forecast, in the tables of a live process."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kube.objects.objects import PodInfo
from tenants.elastic_quota import ElasticQuota
from tests.scorer.live_cluster import at, growing, loaded, model
from tests.tenants.lending_world import BATCH, SHOP, LendingWorld, job_pod, shop_pod


def test_need_is_the_highest_until_the_loan_ends() -> None:
    world = LendingWorld(12.0)
    world.need.refresh()
    assert [world.expected_cores("shop", hours) for hours in (0.5, 6.0, 6.5, 24.0)] == [2, 2, 9, 9]


def test_a_job_that_ends_before_the_evening_borrows_and_a_longer_one_does_not() -> None:
    world = LendingWorld(17.0)
    world.need.refresh()
    assert world.admits(job_pod("short", run="1h", cpu=9))
    assert not world.admits(job_pod("long", run="3h", cpu=9))
    assert world.admits(job_pod("long-and-small", run="3h", cpu=3))


@pytest.mark.parametrize(
    "unforeseen", [{"without_model": True}, {"options": {"by_forecast": False}}], ids=["no model", "switched off"]
)
def test_without_a_forecast_all_that_is_idle_is_lent(unforeseen: dict[str, Any]) -> None:
    world, calls = LendingWorld(18.5, **unforeseen), list[int]()
    world.tables.quotas.on_change.append(lambda: calls.append(1))
    if world.tables.need is not None:
        world.need.refresh()
        assert world.need(3600) is None and not calls
    assert world.admits(job_pod("long", run="3h", cpu=10))


def test_what_is_waited_for_now_and_cannot_be_awaited_for_ever_lends_nothing() -> None:
    world = LendingWorld(12.0)
    assert world.admits(job_pod("a", cpu=9)), "without a thread that looks nothing is awaited"
    world.need.expect()
    assert not world.admits(job_pod("a", cpu=9))
    world.live.later(61)
    assert world.admits(job_pod("a", cpu=9))
    world.need.refresh()
    assert world.admits(job_pod("a", cpu=9))


def test_quotas_that_change_lend_nothing_until_their_need_is_known() -> None:
    world = LendingWorld(12.0)
    world.need.expect()
    world.need.refresh()
    assert not world.need.is_due()
    world.tables.sink.put(replace(SHOP, guaranteed={"cpu": 12.0}))
    assert world.need.is_due() and not world.admits(job_pod("a", cpu=9))
    world.need.refresh()
    assert not world.need.is_due() and world.admits(job_pod("a", cpu=9))


def test_it_is_looked_again_at_half_hours_and_for_a_new_model() -> None:
    world = LendingWorld(12.0)
    world.need.refresh()
    world.live.at(12.05)
    assert not world.need.is_due()
    world.live.at(12.5)
    assert world.need.is_due()
    world.need.refresh()
    world.live.scorer.tables.install(growing(4.0))
    assert world.need.is_due()
    world.need.refresh()
    assert world.expected_cores("shop", 24) == 4


def test_rejected_pods_are_tried_again_when_other_amounts_are_lent() -> None:
    world, calls = LendingWorld(12.0), list[int]()
    world.tables.quotas.on_change.append(lambda: calls.append(1))
    world.need.refresh()
    assert len(calls) == 1
    world.need.refresh()
    assert len(calls) == 1, "nothing has changed"
    world.live.at(12.5)
    world.need.refresh()
    assert len(calls) == 2


def test_a_failure_is_no_forecast(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    world = LendingWorld(18.5)
    world.need.refresh()
    assert not world.admits(job_pod("a", run="3h", cpu=9))

    def fail(*given: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("tenants.expected_need.grouped", fail)
    world.need.refresh()
    assert world.need(3600) is None and world.need.failures == 1 and "what tenants will need" in caplog.text
    assert world.admits(job_pod("a", run="3h", cpu=9))
    assert not world.need.is_due(), "what fails is not tried every second"
    world.live.later(301)
    assert world.need.is_due()


def test_more_pods_than_expected_count_and_fade() -> None:
    world = LendingWorld(12.0, pods=[shop_pod(n, cpu=0.5) for n in range(6)])
    world.need.refresh()
    assert world.expected_cores("shop", 0.1) == 3.0
    forecast = world.need.forecast
    assert forecast is not None
    cores = forecast.need[:, 1 if forecast.tree.quotas[1] == SHOP else 0, 0]
    assert cores[0] == 3000 and cores[11] < 3000


def of_no_model(number: int) -> PodInfo:
    pod = replace(job_pod(f"u{number}", on="node-0", cpu=1), namespace="shop", annotations={})
    return replace(pod, owner=replace(shop_pod(0).owner, name="new-7d9f"))


@pytest.mark.parametrize(
    ("pods", "cores"),
    [
        ([shop_pod(n, service=4, cpu=2) for n in range(3)], 6),  # of a service that does not follow its load
        ([of_no_model(1), of_no_model(2)], 2),
        ([], 0),  # of services that the model expected all the time and that have no pod nothing comes
    ],
)
def test_pods_that_follow_no_forecast_stay_as_many_as_they_are(pods: list[PodInfo], cores: float) -> None:
    world = LendingWorld(12.0, pods=pods)
    world.need.refresh()
    assert world.expected_cores("shop", 24) == cores


def evenings_only() -> LendingWorld:
    """Service 5 has pods between 19:00 and 21:00 alone."""
    of = growing(9.0).model
    dated, day_type = of.replicas_dated.copy(), of.replicas_day_type.copy()
    for counts in (dated, day_type):
        counts[5, :, :38] = counts[5, :, 42:] = 0.0
    return LendingWorld(12.0, pods=(), model=loaded(replace(of, replicas_dated=dated, replicas_day_type=day_type)))


def test_a_service_that_sleeps_needs_its_predicted_load_or_what_its_last_pod_requested() -> None:
    world = evenings_only()
    world.need.refresh()
    load = model().usage(model().calendar.horizon(model().first_day, 1))[5, 0, 0, 38:42].max() * 9
    assert world.expected_cores("shop", 8.0) == pytest.approx(load, abs=0.002) and load > 0
    pod = world.put(shop_pod(0, cpu=0.75))
    world.remove(pod)
    world.need.refresh()
    assert [world.expected_cores("shop", hours) for hours in (6.0, 8.0)] == [0, 6.75]


def test_jobs_that_run_count_until_they_end() -> None:
    running = [job_pod(f"j{n}", run="2h", on="node-0", started=at(11.5)) for n in range(3)]
    world = LendingWorld(12.0, pods=running)
    world.need.refresh()
    forecast = world.need.forecast
    assert forecast is not None
    row = next(row for row, quota in enumerate(forecast.tree.quotas) if quota == BATCH)
    assert forecast.need[:5, row, 0].tolist() == [3000, 3000, 3000, 0, 0]


# From when a pod is admitted


def test_a_pod_is_expected_to_be_admitted_once_the_owner_needs_less() -> None:
    world = LendingWorld(18.5)
    world.need.refresh()
    pod = world.put(job_pod("late", run="2h", cpu=9))
    denied = world.tables.quotas.denial(pod)
    assert denied is not None
    forecast = world.need.forecast
    assert forecast is not None
    before = forecast.need.copy(), forecast.used.copy(), forecast.held.copy()
    assert world.need.admitted_from(pod) == at(21.0)
    for one, other in zip(before, (forecast.need, forecast.used, forecast.held), strict=True):
        np.testing.assert_array_equal(one, other, err_msg="a question changes nothing")
    assert world.tables.quotas.sentence(pod, denied) == (
        "tenant batch uses 0 cores, its min is 2 cores, others lend it 1 core more, the pod asks for 9 cores; "
        "expected to be admitted from 21:00"
    )
    huge = world.put(job_pod("huge", run="1h", cpu=30))
    denied = world.tables.quotas.denial(huge)
    assert denied is not None and world.need.admitted_from(huge) is None, "there is not so much"
    assert "expected" not in world.tables.quotas.sentence(huge, denied)
    world.live.clock.now = at(21.1)
    assert world.need.admitted_from(pod) is None, "that time is over"


# Cards


def test_needs_and_loans_count_cards_whole_and_shared() -> None:
    gpu = "nvidia.com/gpu"
    pods = [replace(pod, requests={**pod.requests, gpu: 1.0}) for pod in (shop_pod(0), shop_pod(1))]
    quotas = [ElasticQuota("shop", "shop", guaranteed={gpu: 10.0}), ElasticQuota("batch", "batch")]
    world = LendingWorld(17.0, pods=pods, quotas=quotas)
    world.need.refresh()
    forecast = world.need.forecast
    assert forecast is not None and forecast.tree.resources == ("cards",)
    row = next(row for row, quota in enumerate(forecast.tree.quotas) if quota.namespace == "shop")
    assert forecast.need[0, row].tolist() == [2000] and forecast.within[-1][row].tolist() == [9000]
    short, long = (job_pod(f"train-{run}", run=run) for run in ("1h", "3h"))
    assert world.admits(replace(short, requests={gpu: 8.0}))
    assert not world.admits(replace(long, requests={gpu: 2.0})) and world.admits(replace(long, requests={gpu: 1.0}))
