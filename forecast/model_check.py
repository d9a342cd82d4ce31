"""Whether a model is physically possible: the last look at it before it is published and before it is used.

`Artefact` has already compared every array with its declaration (names, dtype, shape, finite numbers). What remains:

    names, times, axes    unique names; nothing from the future; the axes of this release
    numbers               each array has a range: `_RANGES`, and amounts the capacity of the nodes (`usage_limits`)
    order                 a high quantile is not below a low one
    weights               predictor weights of a service add up to 1
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple

import numpy as np

from base.arrays import Bools, Floats
from forecast.artefact import Array, ArraySpec, CorruptArtefact, Manifest
from forecast.bound_scores import FURTHEST, NIGHTS
from forecast.calendar import SLOTS_PER_DAY, DayType
from forecast.model import DATED_DAYS, HALF_HOUR_LEVELS, PEAK_QUANTILES
from forecast.resources import RESOURCES
from forecast.scenarios import SCENARIO_DAYS, SCENARIO_WEIGHTS
from forecast.usage_limits import FLEET_FACTOR, most_of_nodes

AXES: Final[Mapping[str, int]] = {
    "days": DATED_DAYS,
    "slots": SLOTS_PER_DAY,
    "day_types": len(DayType),
    "quantiles": len(PEAK_QUANTILES),
    "levels": len(HALF_HOUR_LEVELS),
    "scenarios": len(SCENARIO_WEIGHTS),
    "scenario_days": SCENARIO_DAYS,
    "nights": NIGHTS,
}
"""Lengths that this release reads. The number of predictors is free."""

_CLOCK_SKEW = timedelta(days=1)
_EARLIEST = date(1970, 1, 2)
_FLOAT32 = 1e-6
_ROUNDING = 1.01
"""float32, and capacities that were rounded on their way."""

_OLDER_RELEASES = 4.0
"""Factor on what pods use. Releases before this check published forecasts beyond the limits that `clip_to_limits` holds
them to, of real machines as well: one service must not keep a whole model from being loaded after an upgrade."""

_PODS = 1e7
_MOST_MOVED = 100 * FURTHEST
_SECONDS = 10 * 366 * 86_400.0
_LARGEST = 1e18
"""Beyond any amount in base units; the product of a few such numbers is still finite."""


class _Range(NamedTuple):
    lowest: float
    highest: float


_RANGES: Final[Mapping[str, _Range]] = {
    "replicas_dated": _Range(0, _PODS),
    "replicas_day_type": _Range(0, _PODS),
    "reference_replicas": _Range(0, _PODS),
    "run_starts": _Range(0, _PODS),
    "run_count": _Range(0, _LARGEST),
    "run_seconds": _Range(math.ulp(0.0), _SECONDS),
    "autoscaled": _Range(0, 1),
    "identified": _Range(0, 1),
    "node_capacity_assumed": _Range(0, 1),
    "predictor_weights": _Range(0, 1 + 1e-3),
    "peak_factor": _Range(0, _LARGEST),
    "cluster_std": _Range(0, FLEET_FACTOR),
    "correction": _Range(0, FLEET_FACTOR),
    "peak_weight_error": _Range(0, _LARGEST),
    "node_capacity": _Range(math.ulp(0.0), _LARGEST),
    "node_z": _Range(-np.inf, np.inf),  # `composition.plausible_z` limits it, in models of older releases as well
    "node_bound_z": _Range(-np.inf, np.inf),
    "service_offset": _Range(-_MOST_MOVED, _MOST_MOVED),
    "service_unit": _Range(math.ulp(0.0), _MOST_MOVED),
    "service_scores": _Range(-_MOST_MOVED, _MOST_MOVED),
    "node_offset": _Range(-_MOST_MOVED, _MOST_MOVED),
    "node_scores": _Range(-_MOST_MOVED, _MOST_MOVED),
}
_AMOUNTS: Final = frozenset(
    {
        "usage_dated",
        "usage_quantiles",
        "usage_day_type",
        "own_std",
        "shared_std",
        "peak_weight",
        "peak_weight_prior",
        "per_pod_cost",
        "run_usage",
    }
)
"""What one pod uses, or how wrong that is: at most what its node can hold."""

_FLAGS: Final = ("autoscaled", "identified", "node_capacity_assumed")
_SORTED: Final = ("peak_factor", "run_seconds")


def check_model(
    manifest: Manifest, arrays: Mapping[str, Array], specs: Sequence[ArraySpec], version: str | None, now: datetime
) -> None:
    """Raise CorruptArtefact for a model that no cluster can have; the message names field, value, range and model.

    arrays  : those of `specs`, in the shape that the manifest declares
    version : for the message; None = not published yet
    now     : aware; what is more than a day later is refused. `Manifest.published` may be later: it orders versions
    """
    for problem in _problems(manifest, arrays, specs, now):
        raise CorruptArtefact(f"model {version or 'not published yet'} is not possible: {problem}")


def clip_to_limits(arrays: Mapping[str, Array], specs: Sequence[ArraySpec]) -> dict[str, Array]:
    """The arrays that leave their range, held to it. The trainer's last step before it publishes.

    A forecast may pass what a node can hold, and what one service claims must not keep the forecast of all others from
    being published. Capacities, flags and weights of predictors do not come from claims: those are left as they are.
    """
    held = {}
    for spec, low, high in _limits(arrays, specs, 1.0):
        limits = _passed(spec, arrays[spec.name], low, high)
        if limits is not None and spec.name not in (*_FLAGS, "node_capacity", "predictor_weights"):
            inside = [limit * (1 - _FLOAT32) for limit in limits]  # whatever float32 makes of the limit
            held[spec.name] = np.clip(arrays[spec.name], *inside).astype(arrays[spec.name].dtype)
    return held


def _problems(
    manifest: Manifest, arrays: Mapping[str, Array], specs: Sequence[ArraySpec], now: datetime
) -> Iterator[str]:
    yield from _of_times(manifest, now)
    yield from _of_shapes(manifest)
    yield from _of_json("backtest", manifest.backtest)
    yield from _of_json("extra", manifest.extra)
    names = {"services": manifest.services, "nodes": manifest.nodes, "resources": manifest.resources}
    yield from _of_capacity(arrays, specs, names)
    for spec, low, high in _limits(arrays, specs, _OLDER_RELEASES):
        yield from _outside(spec, arrays[spec.name], low, high, names)
    for name in _FLAGS:
        if not np.isin(arrays[name], (0, 1)).all():
            yield f"{name} holds a value between 0 and 1, allowed are 0 (no) and 1 (yes)"
    for name in _SORTED:
        low_quantile, high_quantile = arrays[name][..., 0], arrays[name][..., 1]
        if (np.isfinite(low_quantile) != np.isfinite(high_quantile)).any() or (high_quantile < low_quantile).any():
            yield f"{name}: the 0.95 quantile must be known with the median, and must not be below it"
    if (np.diff(arrays["usage_quantiles"], axis=2) < 0).any():
        yield "usage_quantiles holds a quantile below one of a lower level, allowed are quantiles that ascend"
    yield from _of_weights(arrays["predictor_weights"])


def _limits(
    arrays: Mapping[str, Array], specs: Sequence[ArraySpec], factor: float
) -> Iterator[tuple[ArraySpec, Floats, Floats]]:
    """Each array's lowest and highest value: scalar, (n_resources,) or (n_nodes, n_resources).

    factor : on the highest amounts, but not on a base where the capacity is known
    """
    capacity = arrays["node_capacity"].astype(np.float64)
    assumed = arrays["node_capacity_assumed"] > 0
    node_most, pod_most = (factor * most for most in most_of_nodes(capacity, assumed, _LARGEST))
    base_most = np.where(np.isfinite(capacity) & ~assumed, _ROUNDING * capacity, node_most)
    for spec in specs:
        if spec.name in _AMOUNTS:
            yield spec, np.zeros(len(RESOURCES)), pod_most
        elif spec.name == "scenario_deviation":
            yield spec, -pod_most, pod_most
        elif spec.name == "request_ratio":
            yield spec, np.zeros(len(RESOURCES)), FLEET_FACTOR * pod_most
        elif spec.name == "node_base":
            yield spec, np.zeros_like(base_most), base_most
        elif spec.name == "node_base_std":
            yield spec, np.zeros_like(node_most), node_most
        else:
            lowest, highest = _RANGES[spec.name]
            yield spec, np.array(lowest), np.array(highest)


def _of_times(manifest: Manifest, now: datetime) -> Iterator[str]:
    latest = now.astimezone(UTC) + _CLOCK_SKEW
    if manifest.created > latest:
        yield f"created is {manifest.created.isoformat()}, allowed is up to {latest.isoformat()} (a day from now)"
    if manifest.trained_until > latest.date():
        yield f"trained_until is {manifest.trained_until}, allowed is up to {latest.date()} (a day from now)"
    if manifest.trained_from < _EARLIEST or manifest.trained_from > manifest.trained_until:
        yield (
            f"trained_from is {manifest.trained_from}, "
            f"allowed is {_EARLIEST} up to trained_until ({manifest.trained_until})"
        )


def _of_shapes(manifest: Manifest) -> Iterator[str]:
    for axis, length in AXES.items():
        if manifest.axes.get(axis, length) != length:
            yield f"axis {axis} has the length {manifest.axes[axis]}, allowed is {length}"
    if manifest.slots_per_day != SLOTS_PER_DAY:
        yield f"slots_per_day is {manifest.slots_per_day}, allowed is {SLOTS_PER_DAY}"
    for field, allowed in (
        ("peak_quantiles", PEAK_QUANTILES),
        ("half_hour_levels", HALF_HOUR_LEVELS),
        ("scenario_weights", SCENARIO_WEIGHTS),
    ):
        found = manifest.extra.get(field, list(allowed))
        if found != list(allowed):
            yield f"{field} is {str(found)[:100]}, allowed is {list(allowed)}"
    for field, names in (("services", manifest.services), ("nodes", manifest.nodes)):
        if not all(name.strip() for name in names):
            yield f"{field} holds an empty name, allowed are names of at least one character"
        if len(set(names)) != len(names):
            twice = next(name for i, name in enumerate(sorted(names)) if sorted(names)[i + 1] == name)
            yield f"{field} holds {twice!r} twice, allowed is every name once"


def _of_json(field: str, document: Any) -> Iterator[str]:
    """Numbers that JSON can write but that are not finite: NaN, Infinity, 1e400, whole numbers of 400 digits."""
    waiting = [(field, document)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += [(f"{place}.{key}", entry) for key, entry in value.items()]
        elif isinstance(value, list | tuple):
            waiting += [(place, entry) for entry in value]
        elif isinstance(value, int | float) and not abs(value) <= float(np.finfo(np.float64).max):
            yield f"{place} is {str(value)[:20]}, allowed are finite numbers"


def _of_capacity(
    arrays: Mapping[str, Array], specs: Sequence[ArraySpec], names: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """First of all arrays: the others are compared with it."""
    spec = next(spec for spec in specs if spec.name == "node_capacity")
    lowest, highest = _RANGES[spec.name]
    yield from _outside(spec, arrays[spec.name], np.array(lowest), np.array(highest), names)


def _of_weights(weights: Array) -> Iterator[str]:
    known = np.isfinite(weights).any(axis=2)  # (n_services, n_resources)
    total: Floats = np.asarray(np.nansum(weights, axis=2, dtype=np.float64))[known]
    if (np.abs(total - 1) > 1e-2).any():
        worst = total[np.argmax(np.abs(total - 1))]
        yield f"predictor_weights of a service add up to {worst:.6g}, allowed is 1"


def _passed(spec: ArraySpec, array: Array, low: Floats, high: Floats) -> tuple[Floats, Floats] | None:
    """Both limits in a shape that fits the array, where a value is beyond one; else None."""
    if not array.size:
        return None
    # Nodes and resources stay, all other axes are reduced; no mask as large as the array is made.
    kept = [axis in ("nodes", "resources") and low.ndim > 0 for axis in spec.axes]
    over = tuple(i for i, stays in enumerate(kept) if not stays)
    least, most = np.fmin.reduce(array, axis=over), np.fmax.reduce(array, axis=over)
    if not ((least < low) | (most > high)).any():
        return None
    shape = [length if stays else 1 for length, stays in zip(array.shape, kept, strict=True)]
    return np.broadcast_to(low, least.shape).reshape(shape), np.broadcast_to(high, least.shape).reshape(shape)


def _outside(
    spec: ArraySpec, array: Array, low: Floats, high: Floats, names: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Where an array leaves its range. low, high: scalar, (n_resources,) or (n_nodes, n_resources). NaN is inside."""
    if (limits := _passed(spec, array, low, high)) is None:
        return
    low_here, high_here = limits
    wrong: Bools = (array < low_here) | (array > high_here)
    at = tuple(map(int, np.unravel_index(int(np.argmax(wrong)), array.shape)))
    where = ", ".join(
        f"{axis.removesuffix('s')} {names[axis][i]}" for axis, i in zip(spec.axes, at, strict=True) if axis in names
    )
    allowed = [float(np.broadcast_to(limit, array.shape)[at]) for limit in (low_here, high_here)]
    least_allowed = "more than 0" if allowed[0] == math.ulp(0.0) else f"{allowed[0]:.6g}"
    yield (
        f"{spec.name} is {float(array[at]):.6g}{f' ({where})' if where else ''}, "
        f"allowed is {least_allowed} to {allowed[1]:.6g} {spec.unit}"
    )
