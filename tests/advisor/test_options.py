"""Settings of the advisor, and of the loop that decides for it."""

from __future__ import annotations

from typing import Any

import pytest

from admission.webhook_settings import AdviceGateOptions
from advisor.advice_settings import AdviseLease, AdviseOptions
from base.errors import InputError
from placement.decisions.decision_settings import DecisionOptions
from profiles.schedule_settings import ScheduleSettings


def test_the_loop_gets_what_is_set() -> None:
    loop = AdviseOptions(
        scheduler_name="second",
        domain="evening",
        decisions=DecisionOptions(events=False),
        leader_election=AdviseLease(name="advisor-2", enabled=False),
    ).loop_settings()
    assert (loop.scheduler_name, loop.domain, loop.share_nodes) == ("second", "evening", [])
    assert loop.decisions == DecisionOptions(events=False)
    assert (loop.binding_timeout, loop.assume_timeout) == (AdviseOptions.gate_timeout, AdviseOptions.follow_timeout)
    assert (loop.leader_election.name, loop.leader_election.enabled) == ("advisor-2", False)


def test_nothing_is_evicted_grouped_or_repaired_and_everything_else_is_as_usual() -> None:
    loop = AdviseOptions().loop_settings()
    assert not (loop.gangs.enabled or loop.preemption.enabled or loop.repair.enabled)
    assert loop.profiles == ["online"] and not loop.dry_run
    set_here = {
        *("scheduler_name", "domain", "decisions", "gangs", "preemption", "repair", "serving", "leader_election"),
    }
    usual = ScheduleSettings()
    for name in ScheduleSettings.model_fields.keys() - set_here:
        assert getattr(loop, name) == getattr(usual, name), name


def test_a_shadow_renews_no_lease_and_advisor_and_webhook_mean_the_same() -> None:
    assert not AdviseOptions(shadow=True).loop_settings().leader_election.enabled
    assert AdviseOptions().loop_settings().leader_election == AdviseLease()
    ours, webhook = AdviseOptions().leader_election, AdviceGateOptions()
    assert ours.name != ScheduleSettings().leader_election.name, "our loops have one of their own"
    assert ours.retry_period < webhook.alive_for / 2, "one renewal that is late stops nothing"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"scheduler_name": "forecast-scheduler"}, "name a kube-scheduler"),
        ({"scheduler_name": ""}, "at least 1 character"),
        ({"gatetimeout": 3}, "gatetimeout"),
        ({"leader_election": {"duration": 2}}, "protects nothing"),
    ],
)
def test_what_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        AdviseOptions(**changed)
