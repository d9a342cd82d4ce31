"""The state of parts that have no Deployment: processes beside the cluster, and what they left."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forecast_scheduler.commands.status.facts import Facts, LeaseFacts
from forecast_scheduler.commands.status.parts import PartState, image_tag, judged_parts
from tests.forecast_scheduler.commands.status.installed import NOW, answer, lease

NO_DEPLOYMENT = Facts("forecast-scheduler", NOW, workloads={})
DAY = 86_400.0


@pytest.mark.parametrize(
    ("of_advisor", "state"),
    [
        (lease(), PartState.RUNS),
        (lease(renewed_ago=42.0), PartState.DOWN),
        (lease(renewed_ago=42.0, holder=""), PartState.STOPPED),
        (lease(renewed_ago=2 * DAY), PartState.ABSENT),
        (lease(renewed_ago=2 * DAY, holder=""), PartState.ABSENT),
        (None, PartState.ABSENT),
    ],
)
def test_a_lease_tells_of_a_process(of_advisor: LeaseFacts | None, state: PartState) -> None:
    leases = {} if of_advisor is None else {"advisor": of_advisor}
    (advisor,) = [part for part in judged_parts(replace(NO_DEPLOYMENT, leases=leases)) if part.name == "advisor"]
    assert advisor.state is state
    assert bool(advisor.leader) is (state is PartState.RUNS)


def test_a_process_of_this_machine_says_itself_whether_it_is_ready() -> None:
    starting = replace(answer(), ready=False, not_ready_because="the cluster has not been read")
    for said, state in ((answer(), PartState.RUNS), (starting, PartState.DOWN)):
        facts = replace(NO_DEPLOYMENT, answers={"scorer": said}, local=frozenset({"scorer"}))
        assert judged_parts(facts)[0].state is state


def test_without_the_right_to_list_deployments_nothing_is_called_missing() -> None:
    assert {part.state for part in judged_parts(Facts("forecast-scheduler", NOW))} == {PartState.UNKNOWN}


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("registry.example:5000/forecast-scheduler:0.1.0", "0.1.0"),
        ("forecast-scheduler", "forecast-scheduler"),
        ("registry.example:5000/forecast-scheduler", "registry.example:5000/forecast-scheduler"),
        ("forecast-scheduler@sha256:0123456789abcdef0123", "sha256:0123456789ab"),
    ],
)
def test_the_version_is_the_tag_of_an_image(image: str, tag: str) -> None:
    assert image_tag(image) == tag
