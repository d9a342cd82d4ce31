from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.status import Status
from scheduler.binding.outcome import Reserved
from scheduler.binding.waiting_pods import PermitWait, WaitingPods
from tests.scheduler.binding.made_up import reserved


@pytest.fixture
def waiting() -> WaitingPods:
    return WaitingPods()


@pytest.fixture
def verdicts() -> list[Status]:
    return []


def add(waiting: WaitingPods, verdicts: list[Status], one: Reserved | None = None) -> PermitWait:
    return waiting.add(one or reserved("cart-1"), {"Gang": 5.0, "Quota": 60.0}, verdicts.append)


def test_a_pod_that_waits_twice_is_told_twice(waiting: WaitingPods, verdicts: list[Status]) -> None:
    add(waiting, verdicts)
    add(waiting, verdicts)
    assert len(verdicts) == 1 and not verdicts[0].is_success and len(waiting) == 1


@given(st.lists(st.sampled_from(["allow Gang", "allow Quota", "reject Gang", "expire Gang", "expire Quota"])))
def test_there_is_one_verdict_at_most(actions: list[str]) -> None:
    waiting, verdicts = WaitingPods(), list[Status]()
    one = add(waiting, verdicts)
    for action in actions:
        verb, plugin = action.split()
        if verb == "allow":
            waiting.allow("uid-cart-1", plugin)
        elif verb == "reject":
            waiting.reject("uid-cart-1", plugin, "no")
        else:
            waiting.expire(one, plugin)
    assert len(verdicts) + len(waiting) == 1


def test_threads_that_disagree_are_one_verdict(waiting: WaitingPods, verdicts: list[Status]) -> None:
    with ThreadPoolExecutor(8) as threads:
        for number in range(200):
            one = add(waiting, verdicts, reserved(f"cart-{number}"))
            uid = one.reserved.pod.uid
            for _ in range(2):
                threads.submit(waiting.allow, uid, "Gang")
                threads.submit(waiting.allow, uid, "Quota")
                threads.submit(waiting.reject, uid, "Gang", "no")
                threads.submit(waiting.expire, one, "Quota")
    assert len(verdicts) == 200 and not len(waiting)
