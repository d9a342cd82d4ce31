"""What places pods beside the rebalancer: each is started on a LiveTwoPeaks, with a model, and is ready."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from placement.gate_exemptions import ADVICE
from testing.clusters.own_nodes import QUICK_LEASE
from testing.processes.scorer_process import ScorerProcess
from testing.rebalancing.live_two_peaks import LiveTwoPeaks, by_extender
from testing.rebalancing.two_peaks import NAMESPACE
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.waiting import eventually
from tests.advise.conftest import webhook_in_front

PlacedBy = Callable[[LiveTwoPeaks, Path, Path], AbstractContextManager[ScorerProcess]]
"""(cluster, directory of settings and logs, registry of models) -> our process."""


@contextmanager
def by_advisor(live: LiveTwoPeaks, directory: Path, models: Path) -> Iterator[ScorerProcess]:
    """An untouched kube-scheduler, and the advisor for pods that the webhook holds."""
    with ExitStack() as running:
        running.enter_context(webhook_in_front(live.api, live.plane, directory / "webhook", NAMESPACE))
        settings = {"advise": {"leader_election": QUICK_LEASE, "gate_timeout": "60s"}}
        process = running.enter_context(
            live.process("advise", directory / "advise", "--models", models, settings=settings)
        )
        running.enter_context(KubeScheduler(live.plane))
        probe = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried", "namespace": NAMESPACE}}
        probe["spec"] = {"containers": [{"name": "main", "image": "app:1"}]}

        def is_held() -> bool:
            gates = live.api.create(probe, "?dryRun=All")["spec"].get("schedulingGates", [])
            return any(gate["name"] == ADVICE for gate in gates)

        assert eventually(is_held), process.log
        yield process


@contextmanager
def by_schedule(live: LiveTwoPeaks, directory: Path, models: Path) -> Iterator[ScorerProcess]:
    """Our own loop, and no kube-scheduler."""
    settings = {"schedule": {"leader_election": QUICK_LEASE}}
    with live.process("schedule", directory / "schedule", "--models", models, settings=settings) as process:
        yield process


PLACED_BY: dict[str, PlacedBy] = {"advisor": by_advisor, "schedule": by_schedule, "extender": by_extender}
