"""What does not reproduce the last days is not published: a resource is kept from the model in use, its bounds
widened, or left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from base.arrays import AnyFloats, Bools, Floats, Floats32, Ints
from base.errors import InputError
from forecast.assumed_capacity import resources_measured
from forecast.composition import bound_z, plausible_z
from forecast.history import History
from forecast.model import DATED_DAYS, PEAK_QUANTILES, PeakModel
from forecast.model_artefact import ARRAYS
from forecast.resources import resource_index
from forecast.scenarios import SCENARIO_DAYS
from trainer.gate.gate_verdict import GateReport, GateResult, GateVerdict
from trainer.gate.reproduction import TOLERATED, YOUNG_DAYS, Reproduction, reproductions

_USAGE_UNIT = "base units of the resource"
_CAPACITY = frozenset({"node_capacity", "node_capacity_assumed"})


def keep_resource(new: PeakModel, old: PeakModel, resource: str) -> PeakModel:
    """`new` with everything about one resource as `old` says it, read at the days of `new`.

    Services and nodes that `old` does not know, or of which it had not measured the resource, keep the new values, and
    so do the usage of runs and the capacity of a node where `old` knows none. Starts and lengths of runs are of no
    resource: they are new. Usage of one pod is carried over to the reference replica count of `new`. Weights of
    predictors stay new where the list of predictors has changed. Offsets of bounds are kept with the bounds: if they
    followed misses that they cannot change, they would grow every night. The two models must have the same calendar.
    """
    r = resource_index(resource)
    services = _rows(new.services, old.services)
    nodes = _rows(new.nodes, old.nodes)
    measured: Bools = np.any(np.isfinite(old.usage_day_type[:, r]), axis=(1, 2))  # (n_old_services,)
    service_known = (services >= 0) & _taken(measured, services)
    share = _share_at_new_replicas(new, old, services)[:, r]
    same_predictors = new.info.get("predictors") == old.info.get("predictors")
    kept: dict[str, Any] = {}
    for spec in ARRAYS:
        if "resources" not in spec.axes or ("predictors" in spec.axes and not same_predictors):
            continue
        at = spec.axes.index("resources")
        axes = spec.axes[:at] + spec.axes[at + 1 :]
        values = _read_at(new, old, spec.name, axes, _one(getattr(old, spec.name), at, r), r)
        array = np.array(getattr(new, spec.name))
        target = _one(array, at, r)  # a view
        if "services" in axes or "nodes" in axes:
            names, rows, known = (
                ("services", services, service_known) if "services" in axes else ("nodes", nodes, nodes >= 0)
            )
            if axes[0] != names:
                raise AssertionError(f"array {spec.name}: the axis {names} is expected to be the first")
            if spec.name == "run_usage":  # of no service, where `old` was published before runs were learned
                known = known & _taken(np.isfinite(values), rows)
            if spec.name in _CAPACITY:  # of no node, where `old` was published before capacities were assumed
                known = known & _taken(np.isfinite(old.node_capacity[:, r]), rows)
            values = values[rows[known]]
            if names == "services" and spec.unit == _USAGE_UNIT:
                values = values * share[known].reshape(-1, *[1] * (values.ndim - 1))
            target[known] = values
        else:
            target[...] = values
        kept[spec.name] = array
    return replace(new, **kept)


def widen_resource(model: PeakModel, resource: str, factor: float) -> PeakModel:
    """The 0.95 bounds of a resource `factor` (>= 1) times as high: of services as such, of nodes above their mean.

    A service's bound is peak_factor[..., -1] x its curve; a node's lies node_z[..., -1] standard deviations up.
    """
    r = resource_index(resource)
    peak_factor: Floats32 = model.peak_factor.copy()
    peak_factor[:, r, :, -1] *= np.float32(factor)
    node_z: Floats32 = model.node_z.copy()
    node_z[r, -1] *= np.float32(factor)
    node_z = plausible_z(node_z, PEAK_QUANTILES).astype(np.float32)
    node_bound_z: Floats32 = model.node_bound_z.copy()
    node_bound_z[:, r] *= np.float32(factor)
    node_bound_z = bound_z(node_bound_z, node_z, PEAK_QUANTILES).astype(np.float32)
    return replace(model, peak_factor=peak_factor, node_z=node_z, node_bound_z=node_bound_z)


def without_resource(model: PeakModel, resource: str) -> PeakModel:
    """`model` as if one resource had never been measured, neither of pods nor of nodes. Known capacities stay."""
    r = resource_index(resource)
    left: dict[str, Any] = {}
    for spec in ARRAYS:
        if "resources" not in spec.axes or spec.name in _CAPACITY:
            continue
        array = np.array(getattr(model, spec.name))
        _one(array, spec.axes.index("resources"), r)[...] = np.nan if spec.nan_allowed else 0.0
        left[spec.name] = array
    left["correction"][:, r] = 1.0
    assumed = model.node_capacity_assumed[:, r] > 0
    capacity, flags = model.node_capacity.copy(), model.node_capacity_assumed.copy()
    capacity[assumed, r], flags[assumed, r] = np.nan, 0.0
    return replace(model, node_capacity=capacity, node_capacity_assumed=flags, **left)


def _read_at(new: PeakModel, old: PeakModel, name: str, axes: tuple[str, ...], values: AnyFloats, r: int) -> AnyFloats:
    """One resource of an array of `old` as it reads on the days of `new`; axes without "resources"."""
    dated = new.calendar.horizon(new.first_day, DATED_DAYS)
    if name == "usage_dated":
        return old.usage(dated)[:, r]
    if name == "usage_quantiles":
        return old.half_hour_quantiles(new.first_day)[:, r]
    if "days" in axes:
        return np.asarray(np.take(values, _dated_offsets(old, dated), axis=axes.index("days")))
    if "scenario_days" in axes:
        offsets = [(day - old.first_day).days % SCENARIO_DAYS for day in dated[:SCENARIO_DAYS]]
        return np.asarray(np.take(values, offsets, axis=axes.index("scenario_days")))
    return values


def _dated_offsets(old: PeakModel, days: Sequence[Any]) -> list[int]:
    """Position of days among the dated days of `old`; later ones as `PeakModel.service_peaks` reads them."""
    types = old.calendar.describe(old.calendar.horizon(old.first_day, DATED_DAYS)).day_type
    wanted = old.calendar.describe(days).day_type
    offsets = []
    for day, kind in zip(days, wanted, strict=True):
        offset = (day - old.first_day).days
        if not 0 <= offset < DATED_DAYS:
            same = np.flatnonzero(types == kind)
            offset = int(same[-1]) if len(same) else DATED_DAYS - 1
        offsets.append(offset)
    return offsets


def _share_at_new_replicas(new: PeakModel, old: PeakModel, services: Ints) -> Floats:
    """What usage of one pod in `old` is multiplied by at the reference of `new`: (n_new_services, n_resources)."""
    replicas = np.zeros(len(old.services))  # 0 = unknown: the reference of `old`
    known = services >= 0
    replicas[services[known]] = new.reference_replicas[known]
    share = np.ones((len(services), new.cluster_std.shape[0]))
    share[known] = old.load_share(replicas)[services[known]]
    return share


def _one(array: AnyFloats, axis: int, index: int) -> NDArray[Any]:
    """A view of one entry along an axis."""
    view: NDArray[Any] = array[(slice(None),) * axis + (index, ...)]
    return view


def _rows(names: Sequence[Any], known: Sequence[Any]) -> Ints:
    """Position of each name among the known ones, -1 = not there."""
    row = {name: index for index, name in enumerate(known)}
    return np.array([row.get(name, -1) for name in names], dtype=np.int64)


def _taken(flags: Bools, rows: Ints) -> Bools:
    """flags[rows], False where the row is -1."""
    return np.append(flags, False)[rows]


@dataclass(frozen=True, slots=True)
class Withheld:
    """What may be published.

    found : how tonight's arrays reproduce each resource, before any was withheld
    young : the history is so short that much is let pass
    """

    model: PeakModel
    report: GateReport
    found: Mapping[str, Reproduction]
    young: bool = False

    @property
    def failed(self) -> tuple[Reproduction, ...]:
        """Those that do not reproduce, published or not; of a young history more of them than are withheld."""
        strict = (replace(one, tolerated=TOLERATED) if self.young else one for one in self.found.values())
        return tuple(one for one in strict if one.fails)


def withhold(
    history: History, model: PeakModel, previous: PeakModel | None, report: GateReport, *, force: bool = False
) -> Withheld:
    """Take out of a model what does not reproduce the last days of its history.

    model    : as the gate let it, fitted on `history`
    previous : the model in use; its part stays where that reproduces
    force    : publish all the same
    Raises InputError if nothing is left to publish.
    """
    found = reproductions(history, model)
    failed = [name for name, one in found.items() if one.fails]
    young = history.n_days < YOUNG_DAYS
    if not failed:
        return Withheld(_with_facts(model, report, found), report, found, young)
    results, kept = dict(report.results), model
    if force:
        for name in failed:
            reason = (
                f"published because it was forced, although it does not reproduce the last days: {found[name].reason()}"
            )
            results[name] = replace(results[name], verdict=GateVerdict.FORCED, reason=reason)
    else:
        for name in failed:
            if previous is not None and _has(previous, name, model) and not _is_kept(results[name]):
                kept = keep_resource(kept, previous, name)
        again = reproductions(history, kept) if kept is not model else found
        for name in failed:
            if again[name].fails:
                kept = without_resource(kept, name)
            results[name] = _withheld(results[name], found[name], _nights(previous, name), left_out=again[name].fails)
    if not resources_measured(kept).any():
        raise InputError(
            "nothing is published, and a model in use stays: "
            + "; ".join(f"{name}: {found[name].reason()}" for name in failed)
            + ". Look at what `forecast-scheduler doctor` finds in the history; --force publishes the model as it is"
        )
    judged = replace(report, results=results)
    return Withheld(_with_facts(kept, judged, found), judged, found, young)


def _has(previous: PeakModel, resource: str, model: PeakModel) -> bool:
    """Whether the model in use has a part of its own that can be kept."""
    return previous.calendar == model.calendar and bool(resources_measured(previous)[resource_index(resource)])


def _nights(previous: PeakModel | None, resource: str) -> int:
    """Nights in a row that the resource of the model in use has been held back."""
    before = GateReport.from_info(previous.info.get("gate")).results.get(resource) if previous is not None else None
    return before.held_back_nights if before is not None else 0


def _is_kept(result: GateResult) -> bool:
    """Whether the part of the model in use was kept by the gate already."""
    return result.verdict is GateVerdict.HELD_BACK


def _withheld(result: GateResult, found: Reproduction, nights: int, *, left_out: bool) -> GateResult:
    """The verdict that replaces that of the gate. nights: held back before; what is wrong stays wrong, without end."""
    why = f"it does not reproduce the last days: {found.reason()}"
    if left_out:
        return GateResult(result.resource, GateVerdict.LEFT_OUT, f"left out, nothing is forecast of it: {why}")
    reason = f"held back, the model in use stays: {why}"
    return replace(result, verdict=GateVerdict.HELD_BACK, reason=reason, widening=1.0, held_back_nights=nights + 1)


def _with_facts(model: PeakModel, report: GateReport, found: Mapping[str, Reproduction]) -> PeakModel:
    reproduction = {name: one.to_json() for name, one in found.items()}
    return replace(model, info={**model.info, "gate": report.to_json()["resources"], "reproduction": reproduction})
