"""From history to the published model: the recipe, stage by stage. Each stage is a module of its own.

one_off_load        what owners that run once bring to nodes by the hour; taken off them for all other stages
peak_weights        what pods add to nodes; usage of pods without measurements
run_forecast        when pods of Job owners start, how long they run, what they use meanwhile
replicas            expected pods, and which services scale with their load
moved_services      the past of services that came from elsewhere
load_per_pod        history at today's replica count
cold_start          young services borrow what they lack
holiday_effect      holidays out of the ordinary days
days_that_differ    so are events of the user's calendar and month ends; coming ones multiply what is expected
change_points       history before a release at the level after it
selection           predictors chosen and blended -> expected curves
half_hours          tomorrow's half hours as quantiles, by one model of all series
peaks               quantiles of the daily peaks
scenarios           last week at today's level, for placement
rehearsal           past weeks forecast from before they began
spread, node_*      errors in parts, base load, calibration on nodes
online_calibration  bounds moved by how the ones issued before held
assumed_capacity    capacities that are not configured
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from base.arrays import AnyFloats, Bools, Floats, Floats32
from base.errors import InputError, NotEnoughHistory
from base.progress import Progress, silent
from forecast.assumed_capacity import as_now, assumed_capacities
from forecast.calendar import SLOTS_PER_DAY, Days, DayType
from forecast.change_points import level_changes
from forecast.cold_start import borrow_history, request_ratios
from forecast.days_that_differ import separate_days
from forecast.event_calendar import events_between
from forecast.event_effect import EventDays
from forecast.fit_inputs import Series, with_earlier_days
from forecast.foundation_model import FoundationModelPredictor
from forecast.half_hours.groups import SeriesGroups
from forecast.half_hours.pooled_model import quantiles_after
from forecast.half_hours.tomorrow import expected_of, quantiles_of_tomorrow
from forecast.hidden_demand import hidden_demand
from forecast.history import History
from forecast.holiday_effect import as_ordinary, curves_by_country, holiday_curves
from forecast.model import DATED_DAYS, NOT_MEASURED, PEAK_QUANTILES, PeakModel
from forecast.node_base import fit_node_base, with_one_offs, without_one_offs
from forecast.node_calibration import calibrate_nodes
from forecast.online_calibration import next_offsets
from forecast.onnx_model import load_model, model_digest
from forecast.peak_weights import PeakWeights, complete_history, fit_peak_weights, pods_felt_by_nodes
from forecast.peaks import PeakForecaster, PeakQuantiles
from forecast.predictors import Predictor, discover
from forecast.rehearsal import levels_known, rehearse, spread_of_past
from forecast.replica_forecast import forecast_replicas, usage_at_reference
from forecast.resources import CPU, MEMORY, RESOURCES
from forecast.run_forecast import RunForecast, forecast_runs
from forecast.scenarios import SCENARIO_DAYS, scenario_weeks
from forecast.selection import Selection, select_predictors
from forecast.spread import with_level_error

_SMALLEST_FACTOR_BASE = 0.01
"""The highest slot of a curve is at least this share of the day's highest quantile, so that the factor stays finite."""

_FOUNDATION_MODEL = "foundation_model"
"""Where a model's info keeps the digest of the foundation model among its predictors."""

_DAYS_TO_CHOOSE_FROM = 14
"""Predictors chosen on fewer days are chosen anew: a growing history shows more of the week every night."""


@dataclass(frozen=True, slots=True)
class FitOptions:
    """What may be tuned about a fit; the defaults are what the benchmarks measure.

    window_days      : older history is not looked at
    rehearsal_weeks  : past weeks forecast from before they began, for the errors of services and nodes
    reselect_share   : share of the series whose predictors are chosen anew each night when a previous model is given
    foundation_model : .onnx file of one more predictor (forecast/foundation_model.py); None = without it
    """

    window_days: int = 91
    rehearsal_weeks: int = 3
    reselect_share: float = 1 / 7
    foundation_model: Path | None = None


def fit(
    history: History,
    options: FitOptions = FitOptions(),
    *,
    previous: PeakModel | None = None,
    progress: Progress = silent,
) -> PeakModel:
    """Learn from all whole days of `history` what the days after them will bring.

    previous : the model of the night before; the predictors it chose are kept for most series
    Raises NotEnoughHistory without a single whole day, InputError if the foundation model cannot be used.
    """
    if history.n_days < 1:
        raise NotEnoughHistory(days=history.n_days, needed=1, purpose="fit a model")
    predictors = _predictors(options.foundation_model)
    foundation = None if options.foundation_model is None else model_digest(options.foundation_model)
    history = history.before(history.n_days, keep=options.window_days)
    offsets = next_offsets(history, previous)
    history = with_one_off = with_earlier_days(history)
    history = without_one_offs(history)
    lacking, hidden = _never_measured(history), hidden_demand(history)
    weights = fit_peak_weights(history)
    history = complete_history(history, weights)
    days = history.describe_days()
    first_day = history.days[-1] + timedelta(days=1)
    coming = history.calendar.horizon(first_day, DATED_DAYS)
    horizon = history.calendar.describe(coming)
    measured: Bools = np.any(np.isfinite(history.usage_per_pod), axis=(1, 3))  # (n_services, n_days)
    in_reach = events_between(history.events, history.days[0], coming[-1])
    events = EventDays.of(in_reach, history.services, history.days, measured)

    runs = forecast_runs(history)
    replicas = forecast_replicas(history.replicas, days, horizon, runs, events.special)
    seen = usage_at_reference(history, replicas)
    ratios = request_ratios(seen, history.requests, days, runs.is_owner)
    borrowed = borrow_history(seen, history.requests, history.services, days, ratios)
    series = Series.of(borrowed.usage)
    if not len(series.service):
        raise InputError(
            f"no usage was measured in the {history.n_days} days until {history.days[-1]}, neither of any pod nor of "
            "enough nodes: check that the usage columns hold numbers, there is nothing to learn from"
        )
    with_events = series.flatten(borrowed.usage)
    level_error, young = borrowed.level_error, borrowed.young
    del seen, borrowed  # tables of all services, which would stay to the end
    past_usage = separate_days(history, events, series, replicas, with_events, measured)
    usage = past_usage.ordinary
    # Of the history as it was: the forecaster of peaks follows a change by itself.
    forecaster = PeakForecaster(quantiles=PEAK_QUANTILES).fit(usage, series.resource, as_ordinary(days))
    changes = level_changes(usage, days.weekday, series.resource != MEMORY)
    past_usage.bring_to_today(changes)

    selection = select_predictors(
        usage,
        as_ordinary(days),
        group=series.resource,
        predictors=predictors,
        previous=_previous_weights(previous, history, series, predictors, foundation),
        reselect_share=options.reselect_share,
        identity=series.identities(history.services),
        night=first_day.toordinal(),
        progress=progress,
    )
    ordinary = selection.predict(usage, as_ordinary(days), as_ordinary(horizon), progress=progress)
    half_hours = quantiles_after(
        usage, as_ordinary(days), as_ordinary(horizon).take(slice(1)), SeriesGroups.of(series, history.services)
    )
    if half_hours is not None:
        of_tomorrow = expected_of(half_hours)
        ordinary[:, 0] = np.where(np.isfinite(of_tomorrow), of_tomorrow, ordinary[:, 0])
    peaks = forecaster.predict(as_ordinary(horizon), offsets.services[series.service, series.resource])
    ordinary = _with_floor(ordinary, peaks)
    factor = peaks.peaks / np.maximum(ordinary.max(axis=2), np.finfo(np.float32).tiny)[..., None]
    day_types = _day_type_profiles(ordinary, as_ordinary(horizon), past_usage.with_holidays, days)
    is_holiday = horizon.day_type == DayType.HOLIDAY
    dated = np.where(is_holiday[None, :, None], day_types[:, DayType.HOLIDAY, None], ordinary)
    if len(history.calendar.countries) > 1:
        dated[:, is_holiday] = curves_by_country(
            past_usage.with_holidays,
            days,
            history.calendar.holidays(history.days),
            history.calendar.holidays(coming)[:, is_holiday],
            day_types[:, DayType.WORKDAY],
            day_types[:, DayType.SUNDAY],
        )

    past = rehearse(history, replicas, series, usage, days, selection, options.rehearsal_weeks, progress)
    if changes.any:
        past = [p.with_effect(series.unflatten(1 / changes.factor(p.end_day, p.first_day))) for p in past]
    deviation_factor = np.ones((1, 1, 1))
    if past_usage.events.events:
        effect, more_pods = past_usage.event_effects(history, series, replicas, ordinary, day_types, horizon)
        past = [p.with_effect(series.unflatten(effect.on(p.days(history)))) for p in past]
        replicas = replace(replicas, dated=replicas.dated * more_pods.on(coming))
        deviation_factor = effect.on(coming)  # (n_series, 14, 48)
        dated = dated * deviation_factor
    known_level = levels_known(history, past)[series.service, series.resource]
    spread = with_level_error(spread_of_past(history, past), series.unflatten(dated), level_error)
    n_pods = np.maximum(replicas.reference, 1.0)[:, None, None]
    variance = series.flatten(spread.shared_std**2 + spread.own_std**2 / n_pods)
    quantiles = quantiles_of_tomorrow(
        half_hours,
        ordinary=ordinary[:, 0],
        expected=dated[:, 0],
        variance=variance,
        peaks=factor[:, 0] * dated[:, 0].max(axis=1)[:, None],
    )
    of_now = as_now(history, history.node_usage)  # what a node used before it was rebuilt is not its base load
    base = fit_node_base(of_now, pods_felt_by_nodes(history, weights), history.capacity, days)
    assumed = assumed_capacities(history)
    calibrated = calibrate_nodes(history, past, base, PEAK_QUANTILES, weights)
    if with_one_off.one_off_usage is not None:
        # Their mean is expected. By how much chance heaps their pods on one node is part of the bound alone.
        base, whole = with_one_offs(base, with_one_off, days), replace(history, node_usage=with_one_off.node_usage)
        calibrated[:, -1] = calibrate_nodes(whole, past, base, PEAK_QUANTILES[-1:], weights)[:, 0]

    deviation = _deviation(scenario_weeks(usage, ordinary, known_level), ordinary, horizon)
    peak_weight, peak_weight_error = weights.published()

    def table(values: AnyFloats) -> Floats32:
        return series.unflatten(values).astype(np.float32)

    return PeakModel(
        calendar=history.calendar,
        first_day=first_day,
        trained_days=history.n_days,
        services=history.services,
        nodes=history.nodes,
        usage_dated=table(dated),
        usage_quantiles=table(np.moveaxis(quantiles, 2, 1)),
        scenario_deviation=table(deviation * deviation_factor[:, None, :SCENARIO_DAYS]),
        usage_day_type=table(day_types),
        replicas_dated=replicas.dated.astype(np.float32),
        replicas_day_type=replicas.day_type.astype(np.float32),
        reference_replicas=replicas.reference.astype(np.float32),
        autoscaled=replicas.autoscaled.astype(np.float32),
        peak_factor=table(factor),
        own_std=spread.own_std.astype(np.float32),
        shared_std=spread.shared_std.astype(np.float32),
        cluster_std=spread.cluster_std.astype(np.float32),
        node_base=base.profile.astype(np.float32),
        node_base_std=base.std.astype(np.float32),
        node_capacity=np.where(np.isfinite(assumed), assumed, history.capacity).astype(np.float32),
        node_capacity_assumed=np.isfinite(assumed).astype(np.float32),
        request_ratio=np.nan_to_num(ratios).astype(np.float32),
        predictor_weights=table(selection.weights),
        peak_weight=peak_weight,
        peak_weight_error=peak_weight_error,
        peak_weight_prior=weights.prior,
        identified=weights.identified.astype(np.float32),
        correction=weights.correction,
        per_pod_cost=weights.per_pod_cost,
        run_seconds=runs.seconds.astype(np.float32),
        run_count=runs.count.astype(np.float32),
        run_starts=runs.starts.astype(np.float32),
        run_usage=runs.usage.astype(np.float32),
        service_offset=table(peaks.offset),
        service_unit=table(peaks.unit),
        **offsets.published(calibrated),
        info=_facts(series, selection, young, weights, runs)
        | ({NOT_MEASURED: lacking} if lacking else {})
        | hidden.to_info(history.services)
        | ({} if foundation is None else {_FOUNDATION_MODEL: foundation}),
        component_peaks={name: series.unflatten(values[:, 0]) for name, values in peaks.components.items()},
    )


def _never_measured(history: History) -> dict[str, list[str]]:
    """Services whose usage of CPU or memory is measured of none of their pods, by resource; {} = there are none.

    What a model says about them comes from nodes or requests. Nothing may be recommended by it.
    """
    found = {}
    for r in (CPU, MEMORY):
        measured = np.isfinite(history.usage_per_pod[:, r]).any(axis=(1, 2))
        if not measured.all():
            found[RESOURCES[r].name] = [str(history.services[row]) for row in np.flatnonzero(~measured)]
    return found


def _predictors(foundation_model: Path | None) -> tuple[Predictor, ...]:
    """Those of the folder, and the foundation model where there is one, in the order of their names."""
    found = [kind() for kind in discover().values()]
    if foundation_model is not None:
        load_model(foundation_model)  # raises before an hour of work
        found.append(FoundationModelPredictor(path=foundation_model))
    return tuple(sorted(found, key=lambda predictor: predictor.name))


def _previous_weights(
    previous: PeakModel | None,
    history: History,
    series: Series,
    predictors: tuple[Predictor, ...],
    foundation: str | None,
) -> Floats | None:
    """The blend weights of the night before in today's order of series; NaN rows for new ones.

    None where the model of the night before knew other predictors, or too few days to choose among them.
    """
    names = [predictor.name for predictor in predictors]
    if previous is None or sorted(previous.info.get("predictors", [])) != sorted(names):
        return None
    if previous.info.get(_FOUNDATION_MODEL) != foundation:
        return None
    if previous.trained_days < min(_DAYS_TO_CHOOSE_FROM, history.n_days):
        return None
    columns = [previous.info["predictors"].index(name) for name in names]
    rows = {service: i for i, service in enumerate(previous.services)}
    index = np.array([rows.get(service, -1) for service in history.services])[series.service]
    weights: Floats = previous.predictor_weights[index, series.resource][:, columns].astype(np.float64)
    weights[index < 0] = np.nan
    return weights


def _with_floor(curves: Floats, peaks: PeakQuantiles) -> Floats:
    """Curves (n_series, n_days, 48) whose highest slot is not negligible against the bound of the day's peak."""
    floor = _SMALLEST_FACTOR_BASE * peaks.peaks[:, :, -1:]
    return np.where(curves.max(axis=2, keepdims=True) < floor, np.maximum(curves, floor), curves)


def _day_type_profiles(ordinary: Floats, horizon: Days, with_holidays: AnyFloats, days: Days) -> Floats:
    """Profiles for days beyond the dated ones: (n_series, 4, 48). Two weeks hold every ordinary type."""
    profiles = np.zeros((len(ordinary), len(DayType), SLOTS_PER_DAY))
    for kind in (DayType.WORKDAY, DayType.SATURDAY, DayType.SUNDAY):
        profiles[:, kind] = ordinary[:, horizon.day_type == kind].mean(axis=1)
    workdays = profiles[:, DayType.WORKDAY, None]
    profiles[:, DayType.HOLIDAY] = holiday_curves(with_holidays, days, workdays, profiles[:, DayType.SUNDAY])[:, 0]
    return profiles


def _deviation(scenarios: Floats, ordinary: Floats, horizon: Days) -> Floats:
    """Scenario weeks seen from the expected curves. No past week shows a coming holiday: it stays as expected."""
    deviation = scenarios - ordinary[:, None, :SCENARIO_DAYS]
    deviation[:, :, (horizon.day_type == DayType.HOLIDAY)[:SCENARIO_DAYS]] = 0.0
    return deviation


def _facts(
    series: Series, selection: Selection, young: Bools, weights: PeakWeights, runs: RunForecast
) -> dict[str, Any]:
    """What people and the gate want to know about a model."""
    return {
        "predictors": list(selection.names),
        "predictor_series": dict(selection.evaluated),
        "mean_weights": {
            RESOURCES[r].name: dict(
                zip(
                    selection.names, selection.weights[series.resource == r].mean(axis=0).round(4).tolist(), strict=True
                )
            )
            for r in np.unique(series.resource)
        },
        "young_services": int(young.any(axis=1).sum()),
        "job_owners": {
            "count": int(runs.is_owner.sum()),
            "with_runs": int((runs.count > 0).sum()),
            "expected": int((runs.starts > 0).any(axis=(1, 2)).sum()),
        },
        "peak_weights": {
            resource.name: {
                "services": int(np.isfinite(weights.determined[:, r]).sum()),
                "effective_rank": round(float(np.nansum(weights.determined[:, r])), 1),
                "identified": int(weights.identified[:, r].sum()),
                "from_nodes": int(weights.from_nodes[:, r].sum()),
                "corrected": int((weights.correction[:, r] != 1).sum()),
                "per_pod_cost": bool((weights.per_pod_cost[r] > 0).any()),
            }
            for r, resource in enumerate(RESOURCES)
        },
    }
