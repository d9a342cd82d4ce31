"""The sample as the local cluster has it: moved to now, and the same as blocks, as a page to scrape, and as objects."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta

import numpy as np
import pytest

from forecast.resources import CPU, RESOURCES
from kube.objects.quantity import parse_quantity
from testing.local_cluster.metrics import page, past
from testing.local_cluster.objects import node_object, one_more, pod_object, replica_set_objects
from testing.local_cluster.sample import HALF_HOUR, PodCourse, Sample, read_sample
from testing.servers.cluster_objects import Manifest
from trainer.prometheus.recorded import NODE_USAGE, POD_INFO

TODAY, DAYS = date(2027, 6, 3), 1
NOON = datetime.combine(TODAY, time(12, 10), UTC).timestamp()


@pytest.fixture(scope="module")
def sample() -> Sample:
    return read_sample(TODAY, DAYS)


def test_it_begins_so_many_days_before_today_and_ends_with_tomorrow(sample: Sample) -> None:
    begins = np.unique(np.concatenate([node.course.begins for node in sample.nodes]))
    first = datetime.combine(TODAY - timedelta(days=DAYS), time(), UTC).timestamp()
    assert (begins[0], begins[-1] + HALF_HOUR) == (first, sample.end)
    assert sample.end == datetime.combine(TODAY + timedelta(days=2), time(), UTC).timestamp()
    assert (np.diff(begins) == HALF_HOUR).all()


def test_its_evenings_are_evenings_in_utc(sample: Sample) -> None:
    load = np.sum([node.course.usage[:, CPU] for node in sample.nodes], axis=0)  # (n_half_hours,)
    hours = sample.nodes[0].course.begins % 86_400 // 3600
    by_hour = [load[hours == hour].mean() for hour in range(24)]
    assert 18 <= int(np.argmax(by_hour)) <= 21, by_hour


def test_more_days_than_it_has_are_refused() -> None:
    with pytest.raises(ValueError, match="the sample has no 33 days: ask for fewer"):
        read_sample(TODAY, 31)


def test_after_its_end_the_last_day_is_played_again(sample: Sample) -> None:
    assert sample.moment(NOON) == NOON
    for days in (1, 2, 3, 10):
        moment = sample.moment(NOON + days * 86_400)
        assert moment == NOON + min(days, 1) * 86_400
        assert page(sample, NOON + days * 86_400) == page(sample, moment)


def test_nothing_of_the_future_is_in_the_past_and_the_page_goes_on_from_there(sample: Sample) -> None:
    series = list(past(sample, NOON))
    assert max(int(one.times[-1]) for one in series) == NOON - 600  # the half hour that ended at twelve
    (recorded,) = (
        one
        for one in series
        if one.name == NODE_USAGE and one.labels == {"node": "small-01", "resource": RESOURCES[CPU].name}
    )
    node = next(node for node in sample.nodes if node.name == "small-01")
    there = node.course.begins < NOON - HALF_HOUR
    np.testing.assert_array_equal(recorded.times, node.course.begins[there] + HALF_HOUR)
    np.testing.assert_array_equal(recorded.values, node.course.usage[there, CPU])
    current = node.course.at(NOON)
    assert current is not None
    assert f"{recorded.prefix} {float(current[CPU])!r}\n" in page(sample, NOON)


def test_no_series_is_there_twice(sample: Sample) -> None:
    prefixes = [one.prefix for one in past(sample, NOON)]
    assert len(set(prefixes)) == len(prefixes)
    names = [line.rpartition(" ")[0] for line in page(sample, NOON).splitlines()]
    assert len(set(names)) == len(names)


def test_objects_are_those_of_the_metrics(sample: Sample) -> None:
    there = _there(sample)
    infos = [line for line in page(sample, NOON).splitlines() if line.startswith(POD_INFO)]
    assert len(infos) == len(there)
    sets = _made(replica_set_objects(there))
    assert sum(one["spec"]["replicas"] for one in sets.values()) == sum(pod.owner[0] == "Deployment" for pod in there)
    for pod in there:
        (reference,) = pod_object(pod, sets)["metadata"]["ownerReferences"]
        assert (reference["kind"], reference["name"]) == pod.controller
        assert reference["uid"]


def test_requests_fit_what_nodes_can_allocate(sample: Sample) -> None:
    there, sets = _there(sample), _made(replica_set_objects(_there(sample)))
    objects = [pod_object(pod, sets) for pod in there]
    for course in sample.nodes:
        allocatable = node_object(course)["status"]["allocatable"]
        on_it = [
            pod["spec"]["containers"][0]["resources"]["requests"] for pod in objects if _node_of(pod) == course.name
        ]
        for resource, at_most in zip(("cpu", "memory"), course.allocatable, strict=True):
            assert math.isclose(parse_quantity(allocatable[resource]), at_most)
            assert sum(parse_quantity(requests[resource]) for requests in on_it) <= at_most


def test_one_more_pod_is_of_the_same_service_and_has_no_node(sample: Sample) -> None:
    sibling = next(pod for pod in _there(sample) if pod.owner == ("Deployment", "checkout"))
    sets = _made(replica_set_objects([sibling]))
    made_set = sets[sibling.namespace, sibling.controller[1]]
    added, running = one_more(sibling, made_set, "another", "ours"), pod_object(sibling, sets)
    assert added["metadata"]["ownerReferences"] == running["metadata"]["ownerReferences"]
    assert (added["metadata"]["name"], added["spec"]["schedulerName"]) == ("another", "ours")
    assert "nodeName" not in added["spec"] and "status" not in added


def _there(sample: Sample) -> list[PodCourse]:
    return [pod for pod in sample.pods if pod.course.at(NOON) is not None]


def _made(objects: list[Manifest]) -> dict[tuple[str, str], Manifest]:
    """As an API server would answer."""
    for one in objects:
        one["metadata"]["uid"] = f"uid-of-{one['metadata']['name']}"
    return {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in objects}


def _node_of(pod: Manifest) -> str:
    return str(pod["spec"]["nodeName"])
