"""What a rule believes the week will bring, as arrays: curves of services, and when pods of Jobs and CronJobs end."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Ints
from cluster.runs.expected import DEFAULT_RUN
from forecast.calendar import SLOT_MINUTES, SLOTS_PER_DAY
from forecast.history import History
from forecast.model import PeakModel
from forecast.replica_forecast import forecast_replicas
from forecast.resources import CPU, MEMORY, RESOURCES
from forecast.run_forecast import forecast_runs
from forecast.scenarios import dilate
from scorer.replay.recording import Recording
from scorer.replay.window import ReplayWindow, flat

# When pods of Jobs and CronJobs are expected to end in a replay: they load their node during their run only.
#
# As in the live tables (cluster.predicted.pod_runs), a run covers whole half hours, and a pod that is there stays at
# least until the end of the half hour under way, whatever was expected of it.

_SLOT_SECONDS = 60.0 * SLOT_MINUTES


@dataclass(frozen=True, slots=True)
class JobPods:
    """Pods of a recording with the half hour in which a rule expects each to end.

    ending : (n_services,) whether pods of the service run to completion
    end    : (n_pods,) expected slot (exclusive); n_slots of the window = it runs on and on
    """

    ending: Bools
    end: Ints


def job_pods(recording: Recording, run_seconds: Floats) -> JobPods:
    """The pods with an expected end, from their real start. run_seconds: (n_services,) NaN = on and on."""
    slots = run_seconds[recording.service] / _SLOT_SECONDS
    ends = recording.ending[recording.service] & np.isfinite(slots)
    end = np.ceil(recording.started + np.where(ends, slots, 0.0))
    end = np.where(ends, np.maximum(end, recording.birth + 1), recording.n_slots)
    return JobPods(recording.ending, end.astype(np.int64))


def true_runs(recording: Recording) -> JobPods:
    """The pods with their true end, for the oracle alone."""
    end = np.where(recording.ending[recording.service], recording.death, recording.n_slots)
    return JobPods(recording.ending, end)


def expected_runs(model: PeakModel) -> Floats:
    """Seconds that the model expects a pod of each Job owner to run: (n_services,); NaN = not a Job owner."""
    ending = np.array([service.runs_to_completion for service in model.services], dtype=np.bool_)
    return _known(model.run_seconds[:, 0], ending)


def last_weeks_runs(history: History, window: ReplayWindow) -> Floats:
    """Median seconds of the runs that began and ended in the week before the placement: (n_services,), NaN likewise."""
    ending = np.array([service.runs_to_completion for service in history.services], dtype=np.bool_)
    moment = window.history_slot * _SLOT_SECONDS
    runs = history.runs
    seen = (runs.start >= moment - 7 * 86_400) & (runs.start + runs.seconds <= moment) & ~runs.open.any(axis=1)
    median = np.full(len(ending), np.nan)
    for service in np.unique(runs.service[seen]).tolist():
        median[service] = np.median(runs.seconds[seen & (runs.service == service)])
    return _known(median, ending)


def _known(seconds: AnyFloats, ending: Bools) -> Floats:
    """Seconds of Job owners, the default of the live tables where they are unknown."""
    return np.where(ending, np.where(np.isfinite(seconds), seconds, DEFAULT_RUN), np.nan)


@dataclass(frozen=True, slots=True)
class NodeBound:
    """What a bound on a node's daily peak needs in addition to the mean curve (forecast.composition).

    own_variance, shared_variance : (n_services, n_resources, n_slots) forecast error of one pod
    base_variance                 : (n_nodes, n_resources, n_slots)
    cluster_std                   : (n_resources,) error common to all, as a share of the load
    z                             : (n_nodes, n_resources) standard deviations from the mean to the bound of a peak
    """

    own_variance: Floats
    shared_variance: Floats
    base_variance: Floats
    cluster_std: Floats
    z: Floats


@dataclass(frozen=True, slots=True)
class CurveForecast:
    """Curves over the slots of a replay window, base units, finite everywhere.

    mean          : (n_services, n_resources, n_slots) expected usage of one pod; of a Job owner, while it runs
    curves        : (n_services, n_resources, n_curves, n_slots) curves that placement weighs; often just the mean
    curve_weights : (n_curves,)
    replicas      : (n_services, n_slots) expected pods
    run_seconds   : (n_services,) that a pod of a Job owner is expected to run from its start; NaN = on and on
    autoscaled    : (n_services,) whether the replica count follows the load
    base          : (n_nodes, n_resources, n_slots) what nodes use besides scheduled pods
    bound         : None where the forecast promises no bound
    model         : that the curves were read from; None = they come from elsewhere
    """

    mean: Floats
    curves: Floats
    curve_weights: Floats
    replicas: Floats
    autoscaled: Bools
    base: Floats
    run_seconds: Floats
    bound: NodeBound | None = None
    model: PeakModel | None = None

    @property
    def n_curves(self) -> int:
        return int(self.curves.shape[2])

    def on_nodes(self, nodes: Ints) -> CurveForecast:
        """The same for some of the nodes, in that order: those that a recording plays with."""
        bound = self.bound and replace(self.bound, base_variance=self.bound.base_variance[nodes], z=self.bound.z[nodes])
        return replace(self, base=self.base[nodes], bound=bound)

    def between(self, first: int, end: int) -> CurveForecast:
        """The same from slot `first` to slot `end`, which count from `first` then."""
        ahead, bound = slice(first, end), self.bound
        if bound is not None:
            bound = replace(
                bound,
                own_variance=bound.own_variance[..., ahead],
                shared_variance=bound.shared_variance[..., ahead],
                base_variance=bound.base_variance[..., ahead],
            )
        return replace(
            self,
            mean=self.mean[..., ahead],
            curves=self.curves[..., ahead],
            replicas=self.replicas[:, ahead],
            base=self.base[..., ahead],
            bound=bound,
        )

    def points(self) -> tuple[Floats, Floats]:
        """The curves end to end, as placement takes them: (n_services, n_resources, n_points) and (n_points,) weights.

        Forecast error does not enter placement beyond the model's dilated scenario week among the curves.
        """
        n_services, n_resources, n_curves, n_slots = self.curves.shape
        return self.curves.reshape(n_services, n_resources, n_curves * n_slots), np.repeat(self.curve_weights, n_slots)

    def on_points(self, by_slot: AnyFloats) -> Floats:
        """(..., n_slots) repeated for each curve: (..., n_points)."""
        return np.tile(np.asarray(by_slot, dtype=np.float64), self.n_curves)


def from_model(
    model: PeakModel, window: ReplayWindow, current_replicas: Floats, *, widen: float = 1.0
) -> CurveForecast:
    """A published model, read as the scorer reads it.

    current_replicas : (n_services,) pods being placed; 0 = as many as the model expects
    widen            : factor on the standard deviations of the node bound, for a model past its time
    """
    days = window.days
    n_days = len(days)
    share = model.load_share(current_replicas)  # (n_services, n_resources)
    usage = np.nan_to_num(model.usage_on_node(days, share))
    curves, weights = model.placement_curves(days, share)
    curves = np.nan_to_num(curves)
    run_seconds = expected_runs(model)
    ending = np.isfinite(run_seconds)
    # What a pod uses while it runs says nothing of the hour: one that starts at another uses as much.
    usage[ending] = _while_running(model, usage[ending], ending)[:, :, None, None]
    curves[ending] = usage[ending][:, :, None]
    felt = (model.correction * share)[:, :, None]

    def daily(std: AnyFloats, factor: AnyFloats) -> Floats:
        variance = (np.nan_to_num(std).astype(np.float64) * factor * widen) ** 2  # (..., n_resources, 48)
        repeated = np.repeat(variance[..., None, :], n_days, axis=-2)
        return np.asarray(window.cut(repeated))

    bound = NodeBound(
        own_variance=daily(model.own_std, felt),
        shared_variance=daily(model.shared_std, felt),
        base_variance=daily(model.node_base_std, np.ones(1)),
        cluster_std=np.nan_to_num(model.cluster_std).astype(np.float64) * widen,
        z=np.nan_to_num(model.node_bound_z).astype(np.float64),
    )
    autoscaled = np.asarray(model.autoscaled) > 0
    replicas = window.cut(np.nan_to_num(model.replicas(days)))
    return CurveForecast(
        mean=window.cut(usage),
        curves=window.cut(curves),
        curve_weights=np.asarray(weights, dtype=np.float64),
        replicas=np.where((autoscaled | ending)[:, None], replicas, current_replicas[:, None]),
        autoscaled=autoscaled,
        base=window.cut(np.nan_to_num(model.base(days))),
        run_seconds=run_seconds,
        bound=bound,
        model=model,
    )


def at_requests(forecast: CurveForecast, model: PeakModel, window: ReplayWindow, requests: Floats) -> CurveForecast:
    """The same with services that the model measured nothing of at their requests, as the scorer takes them.

    requests : (n_services, 2) of one pod, CPU cores and memory bytes
    """
    unknown = np.flatnonzero(np.isnan(model.usage_day_type).all(axis=(1, 2, 3)) & (requests > 0).any(axis=1))
    mean, curves = forecast.mean.copy(), forecast.curves.copy()
    for service in unknown.tolist():
        cores, memory = requests[service].tolist()
        usage = model.usage_from_requests(cores, memory, window.days) + model.cost(window.days)
        mean[service] = window.cut(usage)
        over_midnight = dilate(usage.reshape(len(RESOURCES), -1)).reshape(usage.shape)
        curves[service] = window.cut(over_midnight)[:, None]
    return replace(forecast, mean=mean, curves=curves)


def _while_running(model: PeakModel, usage: Floats, ending: Bools) -> Floats:
    """What nodes feel of a pod of each Job owner while it runs: (n_ending, n_resources).

    usage : (n_ending, n_resources, n_days, 48) its curve, whose highest half hour counts where `run_usage` is unknown
    """
    known = model.run_usage[ending].astype(np.float64) * model.correction[ending] + model.per_pod_cost.max(axis=(1, 2))
    return np.asarray(np.where(np.isfinite(known), known, usage.max(axis=(2, 3), initial=0.0)))


def last_week(history: History, window: ReplayWindow) -> CurveForecast:
    """The seven days before the placement, as they were. The rival to beat.

    A slot without data takes the same half hour of the other days; a service without any is taken at its request.
    """
    before = slice(window.history_slot - 7 * SLOTS_PER_DAY, window.history_slot)
    n_weeks = -(-window.n_days // 7)

    def repeated(by_slot: AnyFloats) -> Floats:
        return np.asarray(np.tile(by_slot, n_weeks)[..., : window.n_slots], dtype=np.float64)

    described = history.before(window.first_day)
    usage = _fill(flat(history.usage_per_pod)[..., before])
    requests = np.zeros(usage.shape[:2])
    requests[:, [CPU, MEMORY]] = np.nan_to_num(described.requests)
    usage = np.where(np.isfinite(usage), usage, requests[:, :, None])
    base = _fill(flat(history.node_usage)[..., before] - np.nan_to_num(flat(history.node_pod_usage)[..., before]))
    counts = _fill(flat(history.replicas)[..., before])
    days = described.describe_days()
    autoscaled = forecast_replicas(described.replicas, days, days, forecast_runs(described)).autoscaled
    mean = repeated(usage)
    return CurveForecast(
        mean=mean,
        curves=mean[:, :, None],
        curve_weights=np.ones(1),
        replicas=repeated(np.nan_to_num(counts)),
        autoscaled=autoscaled,
        base=repeated(np.maximum(np.nan_to_num(base), 0.0)),
        run_seconds=last_weeks_runs(history, window),
    )


def true_future(recording: Recording, autoscaled: Bools) -> CurveForecast:
    """What really came: no forecast can place better by the same objective. When runs end, `true_runs` says by pod."""
    n_services, n_resources, n_slots = recording.n_services, len(RESOURCES), recording.n_slots
    total = np.zeros((n_services, n_resources, n_slots))
    present = np.zeros((n_services, n_slots))
    np.add.at(total, recording.service, recording.load)
    np.add.at(present, recording.service, recording.present)
    mean = total / np.maximum(present, 1e-9)[:, None]
    mean = np.where(present[:, None] > 0, mean, 0.0)
    return CurveForecast(
        mean=mean,
        curves=mean[:, :, None],
        curve_weights=np.ones(1),
        replicas=present,
        autoscaled=autoscaled,
        base=recording.base,
        run_seconds=np.full(n_services, np.nan),
    )


def _fill(by_slot: AnyFloats) -> Floats:
    """Gaps in (..., n_slots) take the mean of the same half hour on the other days, else the mean of all slots."""
    by_day = by_slot.reshape(*by_slot.shape[:-1], -1, SLOTS_PER_DAY).astype(np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # nothing measured at all: stays NaN
        by_day = np.where(np.isfinite(by_day), by_day, np.nanmean(by_day, axis=-2, keepdims=True))
        by_day = np.where(np.isfinite(by_day), by_day, np.nanmean(by_day, axis=(-2, -1), keepdims=True))
    return np.asarray(by_day.reshape(by_slot.shape), dtype=np.float64)
