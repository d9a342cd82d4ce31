"""One look at a cluster: reads and learns once, and hands what was learned to what other commands compute with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from autoscaling.prices.node_prices import NodePrices
from base.errors import ForecastError
from base.progress import Progress
from forecast_scheduler.commands.look import hottest, recorded_days
from forecast_scheduler.commands.look.figures import LookFigures, NextStep
from forecast_scheduler.commands.look.learning import Learned, learned
from forecast_scheduler.commands.look.parts import LookParts
from forecast_scheduler.commands.node_prices import PriceSources, read_price_sources
from forecast_scheduler.commands.rebalance.open_planning import Planning, open_planning
from forecast_scheduler.commands.rebalance.plan_once import plan_money, planned
from forecast_scheduler.commands.requests.requests_of_cluster import recommended
from forecast_scheduler.commands.scorer.scorer_setup import Inputs
from forecast_scheduler.commands.train_night import Trained
from forecast_scheduler.discovery.api_server_transport import store_words
from forecast_scheduler.settings.document import Settings, with_options
from rebalancer.nights_needed import nights_needed
from rebalancer.plan_forms import answer_of, plan_answer
from trainer.audit.examination import examine
from trainer.prometheus.metrics_store import MetricsStore

MOST_MOVES: Final = 7
"""Of the plan that is shown: few enough to be made by hand in an evening. The curve says what more would do."""

_OF_RECORDED_DAYS: Final = ("placing", "capacity")
_OF_CLUSTER: Final = ("nodes", "tonight", "week", "moves", "requests")

Found = TypeVar("Found")
Labels = Mapping[str, Mapping[str, str]]


def look_at(
    settings: Settings,
    source: MetricsStore | Path,
    inputs: Inputs,
    *,
    cluster: str,
    following: tuple[NextStep, ...],
    now: datetime,
    progress: Progress,
) -> LookFigures:
    """Return what there is to say of a cluster. Writes nothing but a directory that is gone afterwards.

    source  : a metrics store, or the directory of a history
    inputs  : the cluster; its models and its store are those of this look
    cluster : its name
    following : what the user may do next
    Raises InputError where the source cannot be read, or has too little to learn from. What cannot be computed
    stops nothing else.
    """
    prices = read_price_sources(settings.prices)  # what is wrong with them is said before the minutes of work
    parts = LookParts(progress)
    with learned(settings, source, now=now, progress=parts.progress) as known:
        return figures_of(
            known,
            inputs if isinstance(source, Path) else replace(inputs, store=source),
            cluster=cluster,
            store=store_words(str(source) if isinstance(source, Path) else source.url),
            following=following,
            prices=prices,
            now=now,
            parts=parts,
        )


def figures_of(
    known: Learned,
    inputs: Inputs,
    *,
    cluster: str,
    store: str,
    following: tuple[NextStep, ...],
    prices: PriceSources,
    now: datetime,
    parts: LookParts,
) -> LookFigures:
    """Return what there is to say of a cluster by what was learned; see look_at."""
    trained, why = known.trained, dict[str, str]()
    labels, of_cluster = _of_cluster(known, replace(inputs, models=known.models), prices, why, parts)
    sections = of_cluster | _of_history(known, labels, prices, why, parts)
    return LookFigures(
        cluster=cluster,
        made_at=now.astimezone(trained.history.calendar.zone).isoformat(timespec="seconds"),
        store=store,
        history=_history_of(trained),
        **sections,
        remarks=tuple(_remarks(trained)),
        not_computed=why,
        next=following,
        seconds=parts.end(trained.report.stage_seconds),
    )


def _of_cluster(
    known: Learned, inputs: Inputs, sources: PriceSources, why: dict[str, str], parts: LookParts
) -> tuple[Labels, dict[str, Any]]:
    """The labels of nodes, and sections that need the cluster as it is now, from one reading of it."""
    seven = {"rebalance": {"budget": {"most": min(MOST_MOVES, known.settings.rebalance.budget.most)}}}
    settings = with_options(known.settings, seven)
    with ExitStack() as stack:
        try:
            with parts.part("cluster"):
                planning = stack.enter_context(open_planning(settings, inputs))
                planning.scorer.tables.refresh_overview()
        except ForecastError as error:
            why |= dict.fromkeys(_OF_CLUSTER, str(error))
            return {}, {}
        scorer = planning.scorer
        prices = sources.price_cluster(scorer.tables)
        sections = dict(
            _computed(
                {
                    "nodes": lambda: hottest.nodes_of(scorer, settings.hot_share),
                    "tonight": lambda: hottest.tonight(scorer),
                    "week": lambda: hottest.week(scorer),
                    "moves": lambda: _moves(planning, settings, prices),
                    "requests": lambda: recommended(settings, scorer, prices)[0].to_json(),
                },
                why,
                parts,
            )
        )
        return {node.name: node.labels for node in prices.nodes}, {"money": prices.by_node_json(), **sections}


def _moves(planning: Planning, settings: Settings, prices: NodePrices) -> dict[str, Any]:
    made, curve = planned(planning)
    budget = settings.rebalance.budget
    nights = nights_needed(curve, made.n_pods, budget)
    answer = answer_of(made, settings.rebalance.mode.value)
    found: dict[str, Any] = msgspec.to_builtins(answer) | msgspec.to_builtins(plan_answer(curve, nights))
    return {"most": budget.most, **found, "money": plan_money(planning, made, prices)}


def _of_history(
    known: Learned, labels: Labels, sources: PriceSources, why: dict[str, str], parts: LookParts
) -> dict[str, Any]:
    """Sections that need the recorded days alone, but for prices: these go by the labels of nodes, by name."""
    trained, settings, progress = known.trained, known.settings, parts.progress
    doctor = {"doctor": lambda: examine(trained.history, trained.files.report, trained.files.cut).to_json()}
    sections = dict(_computed(doctor, why, parts))
    try:
        with parts.part("recorded days"):
            prepared = recorded_days.prepared_days(settings, trained, progress)
    except ForecastError as error:
        why |= dict.fromkeys(_OF_RECORDED_DAYS, str(error))
        return sections
    return sections | dict(
        _computed(
            {
                "placing": lambda: recorded_days.placing(prepared, settings, progress),
                "capacity": lambda: recorded_days.nodes_needed(
                    prepared,
                    settings,
                    sources.price_groups(trained.history, prepared.recording, labels),
                    progress,
                ),
            },
            why,
            parts,
        )
    )


def _computed(
    sections: dict[str, Callable[[], Found]], why: dict[str, str], parts: LookParts
) -> Iterator[tuple[str, Found]]:
    """The sections that can be computed; `why` gets the reasons of the others."""
    for name, compute in sections.items():
        try:
            with parts.part(name):
                found = compute()
            yield name, found
        except ForecastError as error:
            why[name] = str(error)


def _history_of(trained: Trained) -> dict[str, Any]:
    history, model = trained.history, trained.night.model
    return {
        "days": history.n_days,
        "first_day": history.days[0].isoformat(),
        "last_day": history.days[-1].isoformat(),
        "time_zone": history.calendar.time_zone,
        "services": len(history.services),
        "nodes": len(history.nodes),
        "is_cold_start": trained.night.readiness.cold_start,
        "forecast_from": model.first_day.isoformat(),
    }


def _remarks(trained: Trained) -> Iterator[str]:
    """What `train` says of its input."""
    if trained.night.readiness.cold_start:
        yield (
            f"{trained.night.readiness.measured_days} of 7 days are measured: the model leans on requests and on what "
            "similar services use"
        )
    yield from trained.remarks_on_input()
    if reading := trained.reading:
        for day, reason in reading.unreadable.items():
            yield f"{day} could not be read: {reason}"
