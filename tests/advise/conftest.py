"""A real API server with nodes and a model of their services; a kube-scheduler and advisors that tests start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from advisor.advice_settings import AdvisedLoop
from placement.gate_exemptions import ADVICE
from testing.clusters.advised_site import Site, advised_site
from testing.processes.scorer_process import ScorerProcess
from testing.processes.webhook_process import Api, WebhookProcess, configuration
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually


@contextmanager
def webhook_in_front(api: Api, plane: ControlPlane, directory: Path, namespace: str) -> Iterator[WebhookProcess]:
    """The webhook as it is shipped, in a process of its own, and a namespace whose pods ask for advice."""
    settings = {"webhook": {"advice": {"alive_for": "2s"}}}
    with WebhookProcess(directory, plane.kubeconfig, settings=settings, forked=True) as webhook:
        api.create(configuration(webhook, failurePolicy="Fail"))
        api.patch({"kind": "Namespace", "metadata": {"name": namespace}}, {"metadata": {"labels": {ADVICE: "advise"}}})
        yield webhook


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with advised_site(tmp_path) as site:
        yield site


Started = Callable[..., ScorerProcess]


@pytest.fixture
def start(site: Site, tmp_path: Path) -> Iterator[Started]:
    """start(url=of a proxy, models=another registry, **settings and constants of `advise`) -> an advisor that is ready.
    in_flight: pods whose advice is written at once."""
    with ExitStack() as running:
        number = iter(range(100))

        def start(
            *arguments: str,
            url: str = "",
            models: Path | None = None,
            kubeconfig: Path | None = None,
            in_flight: int = AdvisedLoop.bindings_in_flight,
            **advise: Any,
        ) -> ScorerProcess:
            process = ScorerProcess(
                tmp_path / f"advise-{next(number)}",
                "--kubeconfig",
                kubeconfig or site.plane.write_kubeconfig("admin", site.plane.token, url=url),
                "--models",
                models or site.models,
                *arguments,
                settings={
                    "scorer": {"model_every": "1s", "overview_every": "1s"},
                    # With the default of two seconds a busy machine would let pods go without advice.
                    "advise": {"leader_election": {"enabled": False}, "gate_timeout": "60s"} | advise,
                },
                constants={
                    f"{AdvisedLoop.__module__}:{AdvisedLoop.__name__}": {
                        "batch": in_flight,
                        "bindings_in_flight": in_flight,
                    }
                },
                command="advise",
                forked=True,
            )
            running.enter_context(process)
            # A model is looked for once the cluster is read: until then there is no forecast, and no advice.
            assert models is not None or eventually(lambda: process.metric("forecast_degradation_level") < 3), (
                process.log
            )
            return process

        yield start
