"""Clients without a token make services write a few lines of log, however much goes wrong with them."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.processes.attacks import ATTACKS, Target
from testing.processes.scorer_process import ScorerProcess
from testing.processes.webhook_process import Api, WebhookProcess
from testing.servers.control_plane.control_plane import ControlPlane
from tests.processes.conftest import Started

FLOODS = ("pipelined", "garbage", "deep")
SECONDS = 1.0
MOST_BYTES = 4_000
"""Of log in this time: a line of each kind, and a traceback."""


@pytest.fixture
def webhook(plane: ControlPlane, tmp_path: Path) -> Iterator[WebhookProcess]:
    with Api(plane) as api:
        if not api.crds_are_served():
            api.install_crds()
    with WebhookProcess(tmp_path / "webhook", plane.kubeconfig, forked=True) as webhook:
        yield webhook


def _flooded(process: ScorerProcess, target: Target) -> str:
    """What it logs while it is flooded."""
    before = len(process.log)
    with warnings.catch_warnings():
        # An attack that ends during a TLS handshake leaves transport and socket to the garbage collector: asyncio
        # closes neither. They are collected here, and not while another test runs.
        warnings.simplefilter("ignore", ResourceWarning)
        for name in FLOODS:
            asyncio.run(ATTACKS[name](target, SECONDS))
        gc.collect()
    assert process.http.get("/readyz").status_code == 200
    return process.log[before:]


def _check(said: str) -> None:
    assert len(said) < MOST_BYTES and "Traceback" not in said, said[:3000]
    assert not any(line.startswith("ERROR a: made up") for line in said.splitlines())


def test_floods_cost_a_scorer_a_few_lines(start: Started) -> None:
    scorer = start()
    _check(_flooded(scorer, Target("127.0.0.1", _port(scorer), "/v1/scores", "/v1/nodes", 2**20)))


def test_floods_cost_a_webhook_with_tls_a_few_lines(webhook: WebhookProcess) -> None:
    _check(_flooded(webhook, Target("127.0.0.1", _port(webhook), "/mutate", "/metrics", 2**20, tls=True)))


def _port(process: ScorerProcess) -> int:
    return int(process.url.rpartition(":")[2])
