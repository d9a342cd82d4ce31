"""Published models as people read them: age, losses beside last week's, and what the gate said."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from rich.table import Table

from forecast.artefact import Manifest
from forecast.backtest import OURS
from forecast_scheduler.reports.table_format import age, number, plain, titled_table
from scorer.figures import published_losses
from scorer.load_scale import UNKNOWN
from trainer.gate.gate_verdict import GateResult, GateVerdict

_LAST_WEEK = "same_day_last_week"
_WORDS = {
    GateVerdict.PASSED: "passed",
    GateVerdict.HELD_BACK: "held back",
    GateVerdict.WIDENED: "bounds widened",
    GateVerdict.FORCED: "forced",
    GateVerdict.NOTHING_TO_COMPARE: "not compared",
    GateVerdict.LEFT_OUT: "left out",
}

Facts = Mapping[str, Any]


def model_facts(version: str, manifest: Manifest, in_use: str | None, now: datetime) -> dict[str, Any]:
    """Facts of one model as `--json` writes them.

    Losses are pinball losses of daily peaks by resource and quantile, with those of the same day of last week: from the
    backtest that the model was published with, else from the gate's comparison. None = neither has them.
    """
    info = manifest.extra.get("info") or {}
    gate = info.get("gate") or {}
    ours, published = published_losses(manifest.backtest, info), manifest.published or manifest.created
    resources = {}
    for name in manifest.resources:
        result = GateResult.from_json(name, gate.get(name))
        last_week = _last_week(manifest.backtest, gate, name)
        resources[name] = {
            "loss50": ours.get((name, "0.5")),
            "loss95": ours.get((name, "0.95")),
            "last_week_loss50": last_week.get("loss50"),
            "last_week_loss95": last_week.get("loss95"),
            "verdict": None if result is None else result.verdict.value,
            "reason": None if result is None else result.reason,
        }
    return {
        "version": version,
        "in_use": version == in_use,
        "published": published.isoformat(),
        "age_seconds": max(0.0, (now - published).total_seconds()),
        "trained_until": manifest.trained_until.isoformat(),
        "services": len(manifest.services),
        "nodes": len(manifest.nodes),
        "resources": resources,
    }


def models_table(models: Sequence[Facts]) -> Table:
    """One row per model, oldest first; losses are means over the resources that have both."""
    with_users = any("used_by" in one for one in models)
    columns = ("version", ">age", ">loss 0.5", ">loss 0.95", "gate", *(("used by",) if with_users else ()))
    title = "Published models; * is in use. Losses of daily peaks/last week's, lower is better"
    table = titled_table(title, *columns, wrap_first=False)
    for one in models:
        name = plain(f"{'*' if one['in_use'] else ' '} {one['version']}")
        if "problem" in one:
            table.add_row(name, *[""] * 3, plain(one["problem"]), *_users(one))
            continue
        losses = (f"{number(ours)}/{number(theirs)}" for ours, theirs in _means(one["resources"].values()))
        table.add_row(name, age(one["age_seconds"]), *losses, _gate(one["resources"]), *_users(one))
    return table


def _users(one: Facts) -> Sequence[str]:
    """A cell, if users are known: "scorer 2, schedule 1"."""
    if "used_by" not in one:
        return ()
    jobs = {job.removeprefix("forecast-scheduler-"): n for job, n in one["used_by"].items()}
    return (plain(", ".join(f"{job} {n}" for job, n in sorted(jobs.items()))) or UNKNOWN,)


def _last_week(backtest: Mapping[str, Any], gate: Mapping[str, Any], resource: str) -> Mapping[str, Any]:
    """Scores of the forecast "as the same day of last week"; the gate's seasonal naive is the same."""
    figures = (backtest.get("resources") or {}).get(resource) or {}
    if OURS in figures:
        return (figures.get("baselines") or {}).get(_LAST_WEEK) or {}
    return (gate.get(resource) or {}).get("naive") or {}


def _means(resources: Collection[Facts]) -> Iterator[tuple[float | None, float | None]]:
    """Mean loss of the model and of last week for both quantiles, over the resources that have both."""
    for quantile in ("50", "95"):
        pairs = [(one[f"loss{quantile}"], one[f"last_week_loss{quantile}"]) for one in resources]
        both = [pair for pair in pairs if None not in pair]
        yield (float(np.mean([a for a, _ in both])), float(np.mean([b for _, b in both]))) if both else (None, None)


def _gate(resources: Facts) -> str:
    by_verdict = defaultdict(list)
    for name, one in resources.items():
        if one["verdict"] is not None:
            by_verdict[_WORDS[GateVerdict(one["verdict"])]].append(name)
    if not by_verdict:
        return UNKNOWN
    if len(by_verdict) == 1:
        return next(iter(by_verdict))
    return "; ".join(f"{verdict}: {', '.join(names)}" for verdict, names in by_verdict.items())
