"""What a user types after a first look."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from forecast_scheduler.commands.look.figures import NextStep


def next_steps(
    kubeconfig: Path | None, context: str | None, prometheus: str | None, config: Path | None
) -> tuple[NextStep, ...]:
    """The commands that follow, with the options of this look: also kubectl's, whose current cluster may be another."""
    cluster = _options({"--kubeconfig": kubeconfig, "--context": context})
    own = _options({"--prometheus": prometheus, "--config": config})
    return (
        NextStep("to follow this nightly", f"forecast-scheduler train{cluster}{own}"),
        NextStep("in the cluster, observing only", f"kubectl{cluster} apply --server-side -f dist/install.yaml"),
    )


def _options(named: Mapping[str, object]) -> str:
    return "".join(f" {name} {shlex.quote(str(value))}" for name, value in named.items() if value is not None)
