"""Small artefacts whose every number is the same, so that a mixture of two is noticed."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np

from forecast.artefact import ArraySpec, Artefact, Manifest

SPECS = (
    ArraySpec("usage", ("services", "resources", "slots"), "base units", nan_allowed=True),
    ArraySpec("node_base", ("nodes", "resources"), "base units", dtype="float64"),
    ArraySpec("replicas", ("services",), "pods", dtype="int32"),
)


def manifest_of(n_services: int = 2) -> Manifest:
    return Manifest(
        created=datetime(2026, 11, 21, tzinfo=UTC),
        trained_from=date(2026, 10, 24),
        trained_until=date(2026, 11, 20),
        time_zone="Europe/Berlin",
        holiday_country="DE",
        data_digest="0" * 64,
        services=tuple(f"shop/Deployment/cart-{i}" for i in range(n_services)),
        nodes=("node-1", "node-2"),
        resources=("cpu", "memory"),
        slots_per_day=48,
        axes={"slots": 48},
        arrays=SPECS,
        backtest={"cpu": {"loss50": 0.1}},
        extra={"n_predictors": 5},
    )


def artefact_of(value: int, n_services: int = 2) -> Artefact:
    manifest = manifest_of(n_services)
    return Artefact(manifest, {s.name: np.full(manifest.shape(s), value, dtype=s.dtype) for s in SPECS})


def value_of(artefact: Artefact) -> int:
    """The number an artefact was made of; fails if it is not the same everywhere."""
    values = {float(value) for array in artefact.arrays.values() for value in np.unique(array)}
    assert len(values) == 1, f"arrays of different models: {values}"
    return int(values.pop())
