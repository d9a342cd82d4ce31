"""The webhook holds pods while the Lease of an advisor changes, and none otherwise."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

import pytest
import urllib3
from kubernetes import client

from admission.advice import advisor_lease
from admission.advice.options import AdviceGateOptions
from forecast_scheduler.commands.webhook import setup
from kube.leader_election.record import lease_body
from placement.advice_gate import ADVICE

POD: dict[str, Any] = {"metadata": {"labels": {ADVICE: "advise"}}, "spec": {}}


@pytest.mark.parametrize("is_renewed", [True, False])
def test_pods_are_held_while_an_advisor_renews_its_lease(is_renewed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []

    def send(*arguments: Any, **options: Any) -> urllib3.HTTPResponse:
        seen.append(float(len(seen)) if is_renewed else 0.0)
        return urllib3.HTTPResponse(lease_body("ns", "l", holder="a", seconds=10, now=seen[-1]), status=200)

    monkeypatch.setattr(advisor_lease, "send", send)
    monkeypatch.setattr(setup, "LOOK_SECONDS", 0.01)
    with ExitStack() as stack:
        gates_of, _, _ = setup._advice(AdviceGateOptions(), client.ApiClient(client.Configuration()), stack)
        until = time.monotonic() + 30
        while len(seen) < 5 and time.monotonic() < until:
            time.sleep(0.01)
        assert gates_of(POD, "shop", {}) == ([{"name": ADVICE}] if is_renewed else None)
        assert gates_of({"metadata": {}, "spec": {}}, "shop", {}) is None


def test_an_advice_that_is_turned_off_looks_at_no_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(advisor_lease, "send")
    with ExitStack() as stack:
        gates_of, _, _ = setup._advice(
            AdviceGateOptions(enabled=False), client.ApiClient(client.Configuration()), stack
        )
        assert gates_of(POD, "shop", {ADVICE: "advise"}) is None
