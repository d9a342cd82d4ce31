"""The storm benchmark: its arithmetic, and all of it at toy size."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks import job_storm
from benchmarks.job_storm import delays, storm_of
from benchmarks.job_storm_creator import job_pods
from forecast.service_key import owner_from_references, service_of_pod


def test_a_pod_takes_from_its_creation_to_its_binding() -> None:
    created = {f"pod-{i}": 100.0 + 0.01 * i for i in range(101)}
    bound = {name: at + 0.001 * i for i, (name, at) in enumerate(created.items())}
    storm = storm_of(created, bound, {"binding": 0.202})
    assert storm.p50 == pytest.approx(0.050)
    assert storm.p99 == pytest.approx(0.099)
    assert storm.most == pytest.approx(0.100)
    assert storm.in_all == pytest.approx(1.1)
    assert storm.created == pytest.approx(100.0)
    assert storm.cpu == {"binding": pytest.approx(2.0)}


def test_a_binding_that_is_seen_before_the_creator_has_its_answer_took_no_time() -> None:
    assert delays({"pod": 2.0}, {"pod": 1.9, "of the warm-up": 1.0}) == [0.0]


def test_a_pod_that_was_not_bound_is_an_error() -> None:
    with pytest.raises(KeyError):
        delays({"pod": 2.0}, {})


def test_the_storm_is_of_cron_jobs() -> None:
    services: Counter[str] = Counter()
    for one in job_pods("storm", 3000, "job-scheduler"):
        assert one["spec"]["schedulerName"] == "job-scheduler"
        owner = owner_from_references(one["metadata"]["ownerReferences"])
        services[str(service_of_pod("default", one["metadata"]["name"], owner))] += 1
    assert len(services) == 30 and set(services.values()) == {100}
    assert all(name.startswith("default/CronJob/storm-") for name in services)


@pytest.mark.long
def test_all_three_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):  # whether the limit holds means nothing at this size
        job_storm.main(["--nodes", "10", "--pods", "60", "--rounds", "1", "--services", "20"])
    printed = capsys.readouterr().out
    assert all(f"\n  {name} " in printed for name in ("bare", "kube-scheduler", "ours"))
    assert "p99 of ours / bare, by rounds: " in printed
