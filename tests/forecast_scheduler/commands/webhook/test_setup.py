"""The webhook holds pods while the Lease of an advisor changes and it could release them, and none otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from admission.advice import advisor_lease
from admission.advice.holding import Holding
from admission.webhook_settings import AdviceGateOptions
from advisor.advice_settings import AdviseOptions
from base.excluded import ExcludedOptions
from forecast_scheduler.commands import webhook_setup
from kube.client.api_answer import ApiAnswer
from kube.client.kubernetes_client import api_client
from kube.leader_election.record import lease_body
from placement.gate_exemptions import ADVICE
from testing.waiting import eventually
from tests.kube.scripted_server import Answer, ScriptedServer, page

POD: dict[str, Any] = {"metadata": {"labels": {ADVICE: "advise"}}, "spec": {}}
MAY = Answer(201, [b'{"status":{"allowed":true}}'])


@pytest.fixture
def is_renewed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Of the Lease that is looked at."""
    looks = iter(range(1_000_000))

    def send(*arguments: Any, **options: Any) -> ApiAnswer:
        now = float(next(looks)) if request.param else 0.0
        return ApiAnswer(200, lease_body("ns", "l", holder="a", seconds=10, now=now))

    monkeypatch.setattr(advisor_lease, "send", send)
    monkeypatch.setattr(webhook_setup, "LOOK_SECONDS", 0.01)
    return bool(request.param)


@pytest.fixture
def holding(is_renewed: bool, tmp_path: Path) -> Iterator[Holding]:
    def answer(number: int, query: Any) -> Answer:
        return page()

    with ScriptedServer(answer) as server, ExitStack() as stack:
        api = api_client(server.kubeconfig(tmp_path))
        made, _, _ = webhook_setup._advice(
            AdviceGateOptions(), AdviseOptions(), api, stack, webhook_setup._nothing, ExcludedOptions()
        )
        yield made


@pytest.mark.parametrize("is_renewed", [False], indirect=True)
def test_no_pod_is_held_without_an_advisor(holding: Holding) -> None:
    assert holding(POD, "shop", {}, dry_run=True) is None
    assert holding.abilities()["holds_none_because"] == "no advisor is alive"


@pytest.mark.parametrize("is_renewed", [True], indirect=True)
def test_no_pod_is_held_that_could_not_be_released(holding: Holding) -> None:
    """The API server answers the question for the right with a list."""
    assert eventually(lambda: "may not remove" in (holding.abilities()["holds_none_because"] or ""))
    assert holding(POD, "shop", {}, dry_run=True) is None
