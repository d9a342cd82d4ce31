from __future__ import annotations

import random

import pytest

from base.backoff import Backoff
from kube.client.kubernetes_steps import (
    Action,
    StepOutcome,
    WatchResult,
    WatchStep,
    next_step,
    result_of_status,
)

BACKOFF = Backoff(first=0.2, longest=30)
WATCHING, LISTING = WatchStep(Action.WATCH), WatchStep(Action.LIST)


def after(step: WatchStep, *outcomes: StepOutcome) -> WatchStep:
    for outcome in outcomes:
        step = next_step(step, outcome, BACKOFF, random.Random(1))
    return step


def test_a_list_that_outlives_the_servers_memory_is_asked_for_in_one_piece() -> None:
    step = after(LISTING, StepOutcome(WatchResult.EXPIRED))
    assert step.action is Action.LIST and not step.in_pages
    assert not after(step, StepOutcome(WatchResult.FAILED)).in_pages
    # Later lists begin in pages again.
    assert after(step, StepOutcome(WatchResult.LISTED), StepOutcome(WatchResult.EXPIRED)).in_pages


def test_pauses_grow_with_failures_and_end_with_progress() -> None:
    step = after(WATCHING, *[StepOutcome(WatchResult.ENDED)] * 8)
    assert step.action is Action.WATCH
    assert step.wait_seconds >= 0.2 * 2**7 / 2
    step = after(LISTING, *[StepOutcome(WatchResult.LISTED), StepOutcome(WatchResult.EXPIRED)] * 10)
    assert step.action is Action.LIST
    assert step.wait_seconds >= 15
    step = after(WATCHING, *[StepOutcome(WatchResult.FAILED)] * 9, StepOutcome(WatchResult.FAILED, progressed=True))
    assert step.failures == 1
    assert step.wait_seconds <= 0.2
    assert after(LISTING, StepOutcome(WatchResult.FAILED, retry_after=7.0)).wait_seconds == 7.0


@pytest.mark.parametrize(
    ("status", "result"),
    [
        (200, None),
        (410, WatchResult.EXPIRED),
        (400, WatchResult.UNUSABLE),
        (404, WatchResult.UNUSABLE),
        (401, WatchResult.FAILED),
        (403, WatchResult.FAILED),
        (429, WatchResult.FAILED),
        (500, WatchResult.FAILED),
        (503, WatchResult.FAILED),
        (504, WatchResult.FAILED),
        (302, WatchResult.UNUSABLE),
    ],
)
def test_meaning_of_statuses(status: int, result: WatchResult | None) -> None:
    assert result_of_status(status) is result
