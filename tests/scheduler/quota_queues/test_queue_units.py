from __future__ import annotations

import math

from kube.objects.objects import PodInfo
from scheduler.queue.queued_pods import UnitOf, unit_by_owner
from scheduler.quota_queues.queue_of import QUEUE_ANNOTATION, QueueOf
from scheduler.quota_queues.quota_queue_settings import Order, PodQueue
from scheduler.quota_queues.quota_units import QueueUnits
from tests.scheduler.quota_queues.queue_pods import PROFILES, a_job_pod, is_job


class Gangs:
    """By label."""

    def unit_of(self, pod: PodInfo) -> UnitOf:
        gang = pod.labels.get("gang")
        return UnitOf(f"{pod.namespace}/{gang}", 7.0, True) if gang else unit_by_owner(pod)


def due(pod: PodInfo) -> float:
    return float(pod.annotations.get("due", math.inf))


def units(gangs: Gangs | None = None) -> QueueUnits:
    queue_of = QueueOf([PodQueue(name="night", order=Order.FIFO)], PROFILES)
    return QueueUnits(gangs or Gangs(), is_job=is_job, due=due, queue_of=queue_of)


def test_queues_and_due_times_part_them_and_due_times_count_in_steps_of_ten_seconds() -> None:
    plain = units().unit_of(a_job_pod("a"))
    timed = [units().unit_of(a_job_pod("a", annotations={"due": text})) for text in ("1795330009.9", "1795330000")]
    assert timed[0] == timed[1]
    assert timed[0].due == 1795330000.0
    later = units().unit_of(a_job_pod("a", annotations={"due": "1795330010"}))
    night = units().unit_of(a_job_pod("a", annotations={QUEUE_ANNOTATION: "night"}))
    assert len({plain.key, timed[0].key, later.key, night.key}) == 4
    assert night.flow == "night/"


def test_a_gang_stays_what_it_is_and_gets_a_flow_and_a_due_time() -> None:
    pod = a_job_pod("a", namespace="x", labels={"gang": "g"}, annotations={"due": "25"})
    assert units().unit_of(pod) == UnitOf("x/g", 7.0, True, "default/x", 20.0)
