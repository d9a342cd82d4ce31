"""A `PeakModel` as the artefact that is published, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from base.errors import InputError
from forecast.artefact import Array, ArraySpec, Artefact, CorruptArtefact, ForeignArtefact, Manifest
from forecast.calendar import SLOTS_PER_DAY, Calendar
from forecast.composition import bound_z, plausible_z
from forecast.half_hours.tomorrow import normal_quantiles
from forecast.model import HALF_HOUR_LEVELS, PEAK_QUANTILES, PeakModel, no_runs, no_scores
from forecast.model_check import AXES, check_model, clip_to_limits
from forecast.resources import RESOURCES
from forecast.scenarios import SCENARIO_WEIGHTS
from forecast.service_key import ServiceKey

_USAGE = "base units of the resource"

ARRAYS: tuple[ArraySpec, ...] = (
    ArraySpec("usage_dated", ("services", "resources", "days", "slots"), _USAGE, nan_allowed=True),
    ArraySpec("usage_quantiles", ("services", "resources", "levels", "slots"), _USAGE, nan_allowed=True),
    ArraySpec(
        "scenario_deviation", ("services", "resources", "scenarios", "scenario_days", "slots"), _USAGE, nan_allowed=True
    ),
    ArraySpec("usage_day_type", ("services", "resources", "day_types", "slots"), _USAGE, nan_allowed=True),
    ArraySpec("replicas_dated", ("services", "days", "slots"), "pods"),
    ArraySpec("replicas_day_type", ("services", "day_types", "slots"), "pods"),
    ArraySpec("reference_replicas", ("services",), "pods"),
    ArraySpec("autoscaled", ("services",), "1 = yes"),
    ArraySpec("peak_factor", ("services", "resources", "days", "quantiles"), "1", nan_allowed=True),
    ArraySpec("own_std", ("services", "resources", "slots"), _USAGE),
    ArraySpec("shared_std", ("services", "resources", "slots"), _USAGE),
    ArraySpec("cluster_std", ("resources",), "share of the load"),
    ArraySpec("node_base", ("nodes", "resources", "day_types", "slots"), _USAGE),
    ArraySpec("node_base_std", ("nodes", "resources", "slots"), _USAGE),
    ArraySpec("node_z", ("resources", "quantiles"), "standard deviations"),
    ArraySpec("node_capacity", ("nodes", "resources"), _USAGE, nan_allowed=True),
    ArraySpec("node_capacity_assumed", ("nodes", "resources"), "1 = yes"),
    ArraySpec("request_ratio", ("resources", "day_types", "slots"), "base unit per requested core or byte"),
    ArraySpec("predictor_weights", ("services", "resources", "predictors"), "1", nan_allowed=True),
    ArraySpec("peak_weight", ("services", "resources", "day_types", "slots"), _USAGE, nan_allowed=True),
    ArraySpec("peak_weight_error", ("services", "resources"), "share of the weight", nan_allowed=True),
    ArraySpec("peak_weight_prior", ("services", "resources"), _USAGE, nan_allowed=True),
    ArraySpec("identified", ("services", "resources"), "1 = yes"),
    ArraySpec("correction", ("services", "resources"), "1"),
    ArraySpec("per_pod_cost", ("resources", "day_types", "slots"), _USAGE),
    ArraySpec("run_seconds", ("services", "quantiles"), "seconds", nan_allowed=True),
    ArraySpec("run_count", ("services",), "runs"),
    ArraySpec("run_starts", ("services", "day_types", "slots"), "pods"),
    ArraySpec("run_usage", ("services", "resources"), _USAGE, nan_allowed=True),
    ArraySpec("service_offset", ("services", "resources"), "service_unit", nan_allowed=True),
    ArraySpec("service_unit", ("services", "resources"), "log ratio", nan_allowed=True),
    ArraySpec("service_scores", ("services", "resources", "nights"), "service_unit", nan_allowed=True),
    ArraySpec("node_bound_z", ("nodes", "resources"), "standard deviations"),
    ArraySpec("node_offset", ("nodes", "resources"), "standard deviations"),
    ArraySpec("node_scores", ("nodes", "resources", "nights"), "standard deviations", nan_allowed=True),
)

_RUNS = frozenset(spec for spec in ARRAYS if spec.name.startswith("run_"))
"""Models published before runs were learned have none of these: they load as models that know of no runs."""

_ASSUMED = frozenset(spec for spec in ARRAYS if spec.name == "node_capacity_assumed")
"""Models published before capacities were assumed do not have it: all their capacities are known."""

_SCORED = ("service_offset", "service_unit", "service_scores", "node_bound_z", "node_offset", "node_scores")
_SCORES = frozenset(spec for spec in ARRAYS if spec.name in _SCORED)
"""Models published before bounds were scored one by one have none of these."""


_HALF_HOURS = frozenset(spec for spec in ARRAYS if spec.name == "usage_quantiles")
"""Models published before half hours had quantiles have the normal ones that their errors say."""


def artefact_of(model: PeakModel, created: datetime, backtest: dict[str, object] | None = None) -> Artefact:
    """What the registry publishes. created: an aware datetime; backtest: figures to publish with it."""
    manifest = Manifest(
        created=created,
        trained_from=model.first_day - timedelta(days=model.trained_days),
        trained_until=model.first_day - timedelta(days=1),
        time_zone=model.calendar.time_zone,
        holiday_country=model.calendar.holiday_country,
        data_digest=model.data_digest,
        services=tuple(str(service) for service in model.services),
        nodes=model.nodes,
        resources=tuple(resource.name for resource in RESOURCES),
        slots_per_day=SLOTS_PER_DAY,
        axes={**AXES, "predictors": model.predictor_weights.shape[2]},
        arrays=ARRAYS,
        backtest=backtest or {},
        extra={
            "info": model.info,
            "peak_quantiles": list(PEAK_QUANTILES),
            "half_hour_levels": list(HALF_HOUR_LEVELS),
            "scenario_weights": list(SCENARIO_WEIGHTS),
        },
    )
    arrays = {spec.name: np.asarray(getattr(model, spec.name), dtype=spec.dtype) for spec in ARRAYS}
    return Artefact(manifest, arrays)


def within_limits(model: PeakModel) -> tuple[PeakModel, tuple[str, ...]]:
    """The model with every number held to what a cluster can have, and the names of the arrays that had to be."""
    held: dict[str, Any] = dict(clip_to_limits({spec.name: getattr(model, spec.name) for spec in ARRAYS}, ARRAYS))
    return replace(model, **held), tuple(held)


def model_of(artefact: Artefact, now: datetime) -> PeakModel:
    """The model in a loaded artefact; raises ForeignArtefact where its arrays are not the ones this program knows.

    Raises CorruptArtefact where no cluster can have such a model (`forecast.model_check`); now: aware.
    `composition.plausible_z` limits its `node_z`: releases before that rule published any z.
    """
    manifest = artefact.manifest
    missing = set(ARRAYS) - set(manifest.arrays)
    parts = (_RUNS, _ASSUMED, _HALF_HOURS, _SCORES)
    known = set(manifest.arrays) <= set(ARRAYS) and missing == set().union(*(one for one in parts if one <= missing))
    if not known or manifest.resources != tuple(r.name for r in RESOURCES):
        raise ForeignArtefact(
            "the model's arrays or resources are not those of this release: train again with the release that reads it"
        )
    try:
        services = tuple(ServiceKey.parse(name) for name in manifest.services)
    except InputError as error:
        raise CorruptArtefact(f"the manifest names a service that is not namespace/Kind/name: {error}") from error
    info = manifest.extra.get("info", {})
    unscored = no_scores(len(services), artefact.arrays["node_z"], len(manifest.nodes))
    arrays: dict[str, Any] = {**no_runs(len(services)), **unscored, **artefact.arrays}
    arrays.setdefault("node_capacity_assumed", np.zeros_like(arrays["node_capacity"]))
    if missing >= _HALF_HOURS:
        arrays["usage_quantiles"] = np.repeat(arrays["usage_dated"][:, :, :1], len(HALF_HOUR_LEVELS), axis=2)
    check_model(manifest, arrays, ARRAYS, artefact.version, now)
    if missing >= _HALF_HOURS:  # after the check, which holds what was published to the nodes, not what follows from it
        arrays["usage_quantiles"] = _quantiles_of_errors(arrays)
    arrays["node_z"] = plausible_z(arrays["node_z"], PEAK_QUANTILES).astype(np.float32)
    arrays["node_bound_z"] = bound_z(arrays["node_bound_z"], arrays["node_z"], PEAK_QUANTILES).astype(np.float32)
    return PeakModel(
        calendar=Calendar(manifest.time_zone, manifest.holiday_country),
        first_day=manifest.trained_until + timedelta(days=1),
        trained_days=(manifest.trained_until - manifest.trained_from).days + 1,
        services=services,
        nodes=manifest.nodes,
        data_digest=manifest.data_digest,
        info=dict(info) if isinstance(info, dict) else {},
        **arrays,
    )


def _quantiles_of_errors(arrays: Mapping[str, Array]) -> Array:
    """`PeakModel.usage_quantiles` of a model that was published without them."""
    replicas = np.maximum(arrays["reference_replicas"], 1.0)[:, None, None]
    variance = arrays["shared_std"].astype(np.float64) ** 2 + arrays["own_std"].astype(np.float64) ** 2 / replicas
    quantiles = normal_quantiles(arrays["usage_dated"][:, :, 0], variance)
    return np.moveaxis(np.minimum(quantiles, np.finfo(np.float32).max), -1, 2).astype(np.float32)
