"""The gate in order: refit at the cut-off of the model in use, compare, judge; later, apply the verdicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta

import numpy as np

from base.arrays import Bools, Floats
from base.errors import InputError
from base.progress import Progress, silent
from forecast.history import History
from forecast.model import PeakModel
from forecast.resources import RESOURCES
from trainer.gate.evidence import GateEvidence, compare, evaluation_days, node_only
from trainer.gate.gate_verdict import GateReport, GateResult, GateVerdict, judge
from trainer.gate.withheld_resources import keep_resource, widen_resource

FitModel = Callable[[History, PeakModel | None], PeakModel]
"""A history and the model of the night before -> a model."""

_FEWEST_DAYS_BEFORE = 7
"""Before a week is known, a model leans on what similar services use: too early for comparisons."""

_NOTHING = "neither services nor nodes were measured and forecast on the days since the cut-off of the model in use"

_EVALUATION_DAYS = 7
"""The last days after the cut-off that are compared: one of each weekday."""

_DAYS_LOOKED_AT = 28
"""Days on which a resource is looked for in the usage of pods, before it counts as measured by node only."""


def measured_share(history: History, current: PeakModel, days: tuple[date, ...]) -> Floats:
    """Share of the half hours of pods, of services that `current` knows usage of, that was measured: (n_resources,).

    A query that broke leaves no evidence against a new model, which would then replace what is known by priors.
    For resources that only nodes are measured for, the share of the nodes' half hours. NaN: nothing was to be measured.
    """
    index = [history.days.index(day) for day in days]
    row = {service: number for number, service in enumerate(current.services)}
    found = np.array([row.get(service, -1) for service in history.services], dtype=np.int64)
    knows: Bools = np.all(np.isfinite(current.usage_dated), axis=(2, 3))  # (n_model_services, n_resources)
    known = np.zeros((len(found), knows.shape[1]), dtype=np.bool_)
    known[found >= 0] = knows[found[found >= 0]]
    pods = np.nan_to_num(history.replicas[:, index].astype(np.float64))  # (n_services, n_days, 48)
    measured = np.isfinite(history.usage_per_pod[:, :, index])
    there = np.einsum("sdt,sr->r", pods, known)
    seen = np.einsum("sdt,srdt,sr->r", pods, measured, known)
    share: Floats = np.where(there > 0, seen / np.maximum(there, 1e-300), np.nan)
    by_node = node_only(history, _DAYS_LOOKED_AT)
    of_nodes = np.isfinite(history.node_usage[:, :, index]).mean(axis=(0, 2, 3)) if len(history.nodes) else share
    return np.where(by_node & np.isfinite(share), of_nodes, share)


def run_gate(
    history: History,
    current: PeakModel | None,
    fit_model: FitModel,
    *,
    force: bool = False,
    progress: Progress = silent,
) -> GateReport:
    """Judge tonight's recipe against the model in use; fits once at the cut-off of the latter.

    history   : everything that is known tonight
    current   : the model in use; None = there is none
    fit_model : tonight's recipe
    force     : publish everything as it is
    """
    progress("gate", 0, 1)
    why, evidence = _evidence(history, current, fit_model)
    tonight = history.days[-1] + timedelta(days=1)
    results = {
        resource.name: judge(
            resource.name,
            evidence.get(resource.name),
            force=force,
            previous=_previous(current, resource.name, history),
            same_night=current is not None and current.first_day >= tonight,
            why_nothing=why or _NOTHING,
            measured_share=float(share),
        )
        for resource, share in zip(RESOURCES, _measured(history, current), strict=True)
    }
    progress("gate", 1, 1)
    return GateReport(results, current.first_day if current is not None else None)


def apply_gate(candidate: PeakModel, current: PeakModel | None, report: GateReport) -> PeakModel:
    """What is published: `candidate`, fitted on everything, with resources kept or widened as the report says.

    The verdicts go into info["gate"]: the next night counts from there.
    """
    model = candidate
    for name, result in report.results.items():
        if result.verdict is GateVerdict.HELD_BACK and current is not None:
            model = keep_resource(model, current, name)
        elif result.verdict is GateVerdict.WIDENED:
            model = widen_resource(model, name, result.widening)
    return replace(model, info={**model.info, "gate": report.to_json()["resources"]})


def _evidence(history: History, current: PeakModel | None, fit_model: FitModel) -> tuple[str, dict[str, GateEvidence]]:
    """Why there is nothing to compare ("" = there is), and the figures."""
    if current is None:
        return "no model is in use", {}
    cut_off = current.first_day
    if current.calendar != history.calendar:
        return "the time zone or the holidays are not those of the model in use", {}
    days = evaluation_days(history, cut_off, _EVALUATION_DAYS)
    if not days:
        return f"no day has passed since the cut-off of the model in use, {cut_off}", {}
    if cut_off not in history.days:
        return f"the history does not hold {cut_off}, the cut-off of the model in use", {}
    n_before = history.days.index(cut_off)
    if n_before < _FEWEST_DAYS_BEFORE:
        return f"{n_before} days before {cut_off} are less than a week: cold start", {}
    try:
        refitted = fit_model(history.before(n_before), current)
    except InputError as error:
        return f"nothing could be learned at {cut_off}: {error}", {}
    return "", compare(history, current, refitted, days)


def _measured(history: History, current: PeakModel | None) -> Floats:
    """`measured_share` where there are days to look at, else NaN: (n_resources,)."""
    if current is not None and current.calendar == history.calendar:
        days = evaluation_days(history, current.first_day, _EVALUATION_DAYS)
        if days:
            return measured_share(history, current, days)
    return np.full(len(RESOURCES), np.nan)


def _previous(current: PeakModel | None, resource: str, history: History) -> GateResult | None:
    """The verdict stored with the model in use; None as well where its arrays could not be read on our slots."""
    if current is None or current.calendar != history.calendar:
        return None
    gate = current.info.get("gate")
    return GateResult.from_json(resource, gate.get(resource)) if isinstance(gate, dict) else None
