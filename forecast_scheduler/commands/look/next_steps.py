"""What a user types after a first look."""

from __future__ import annotations

import shlex
from pathlib import Path

from forecast_scheduler.commands.look.figures import NextStep


def next_steps(kubeconfig: Path | None, context: str | None, prometheus: str | None) -> tuple[NextStep, ...]:
    """The commands that follow, with the options of this look."""
    named = {"--kubeconfig": kubeconfig, "--context": context, "--prometheus": prometheus}
    options = "".join(f" {name} {shlex.quote(str(value))}" for name, value in named.items() if value is not None)
    return (
        NextStep("to follow this nightly", f"forecast-scheduler train{options}"),
        NextStep("in the cluster, observing only", "kubectl apply --server-side -f dist/install.yaml"),
    )
