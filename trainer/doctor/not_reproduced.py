"""The finding of a run whose model does not reproduce the last days (`trainer.gate.reproduction`); `doctor` has no
model to look at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forecast.resources import RESOURCES
from trainer.doctor.finding import Finding, Kind
from trainer.gate.reproduction import Reproduction


def not_reproduced(failed: Sequence[Reproduction], n_services: int, n_nodes: int) -> Finding | None:
    """One finding for all resources that are not reproduced; None without any."""
    if not failed:
        return None
    names = {one.resource for one in failed}
    return Finding(
        Kind.NOT_REPRODUCED,
        n_services=n_services,
        n_nodes=n_nodes,
        load_share=np.array([float(resource.name in names) for resource in RESOURCES]),
        what="tonight's model does not reproduce the last days: "
        + "; ".join(f"{one.resource}: {one.reason()}" for one in failed),
        advice="do not trust a forecast of it: read the other findings of this run and of forecast-scheduler doctor, "
        "and compare the services that are named with the cluster's own dashboards",
    )
