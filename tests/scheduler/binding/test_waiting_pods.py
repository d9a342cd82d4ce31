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


def test_all_have_to_approve(waiting: WaitingPods, verdicts: list[Status]) -> None:
    add(waiting, verdicts)
    assert waiting.allow("uid-cart-1", "Gang") and not verdicts and len(waiting) == 1
    assert not waiting.allow("uid-cart-1", "Gang")
    assert waiting.allow("uid-cart-1", "Quota")
    assert [verdict.is_success for verdict in verdicts] == [True] and not waiting.all()


def test_one_denies(waiting: WaitingPods, verdicts: list[Status]) -> None:
    add(waiting, verdicts)
    assert waiting.reject("uid-cart-1", "Quota", "used up")
    assert not waiting.allow("uid-cart-1", "Gang") and not waiting.reject("uid-cart-1", "Quota", "used up")
    assert [(v.is_success, v.plugin, v.reason) for v in verdicts] == [(False, "Quota", "used up")]


def test_time_is_up_for_one(waiting: WaitingPods, verdicts: list[Status]) -> None:
    one = add(waiting, verdicts)
    waiting.expire(one, "Gang")
    waiting.expire(one, "Quota")
    assert [v.reason for v in verdicts] == ["rejected due to timeout after waiting 5s at plugin Gang"]


def test_the_time_of_who_approved_already_does_not_count(waiting: WaitingPods, verdicts: list[Status]) -> None:
    one = add(waiting, verdicts)
    waiting.allow("uid-cart-1", "Gang")
    waiting.expire(one, "Gang")
    assert not verdicts


def test_the_time_of_an_earlier_wait_does_not_count(waiting: WaitingPods, verdicts: list[Status]) -> None:
    one = add(waiting, verdicts)
    waiting.reject("uid-cart-1", "Gang", "no")
    add(waiting, verdicts)
    waiting.expire(one, "Gang")
    assert len(verdicts) == 1 and len(waiting) == 1


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
