"""Is the model fresh, is it good, and is everything measured? The nightly run and what the services have of it.

Figures of the run (forecast_train_*) come from node-exporter's textfile collector or a Pushgateway
(docs/operate/train.md).
"""

from __future__ import annotations

from typing import Final

from dashboards.panels.layout import Board, Part, Placed, figure
from dashboards.panels.marks import marks
from dashboards.panels.plots import GREEN, ORANGE, RED, Limits, Query, columns, lines, values
from dashboards.panels.selecting import variable, where
from dashboards.panels.units import COUNT, DATE, RATIO, SECONDS, SHARE

_STALE: Final[Limits] = ((36 * 3600, ORANGE), (14 * 86400, RED))
"""docs/use/scorer.md: bounds are widened from 36 hours on, placing is by requests after 14 days."""

_RESOURCE: Final = "by (cluster, resource)"
_MINE: Final = {"job": "$job"}


def model() -> Board:
    """The dashboard."""
    return Board(
        uid="forecast-model",
        title="Forecast / Model",
        text="Versions in use, the gate, losses and coverage, drift of the tables, gaps in what is measured.",
        parts=[
            Part("Now", _now()),
            Part("Versions", _versions()),
            Part("The nightly run and its gate", _gate()),
            Part("Losses and coverage", _losses()),
            Part("Drift and gaps in the data", _data()),
        ],
        variables=[variable(name) for name in ("cluster", "job", "resource")],
        annotations=marks(),
        since="now-7d",
    )


def _of_run(metric: str, by: str = "resource") -> str:
    """Of the last run, whoever exports it."""
    labels = {"resource": "$resource"} if "resource" in by else {}
    return f"max by (cluster, {by}) ({metric}{where(**labels)})"


def _now() -> list[Placed]:
    return [
        figure(
            "Age of the model",
            "Of the oldest one in use. From 36 hours on bounds are widened; after 14 days it is not used.",
            f"max (forecast_model_age_seconds{where(**_MINE)})",
            SECONDS,
            _STALE,
        ),
        figure(
            "Last good run",
            "When the last run ended that left its night's model in use, seconds ago.",
            f"time() - max (forecast_train_last_success_timestamp_seconds{where()})",
            SECONDS,
            _STALE,
        ),
        figure(
            "Versions in use",
            "Different models in use now, in the cluster that has most: one, or for a minute after a run two.",
            f"max (count by (cluster) (count by (cluster, version) (forecast_model_info{where(**_MINE)})))",
            COUNT,
            ((2, ORANGE),),
        ),
        figure(
            "Models refused",
            "Processes that refused a newer model: damaged, of another release, or not signed by "
            "the configured key. The log says why, and so does /v1/status of scorer and schedule.",
            f"sum (forecast_model_refused{where(**_MINE)})",
            COUNT,
            ((1, RED),),
        ),
        figure(
            "Held back by the gate",
            "Resources of which the last run published the arrays of the model before, since "
            "new ones would have been worse.",
            f"sum (max {_RESOURCE} (forecast_train_held_back{where(resource='$resource')}))",
            COUNT,
            ((1, ORANGE),),
        ),
        figure(
            "Unknown pods",
            "Share of the pods whose service the model does not know; they count by their requests.",
            f"max (forecast_unknown_service_pods{where(**_MINE)}"
            f" / on (cluster, job, instance) forecast_cluster_objects{where(**_MINE, kind='pods')})",
            SHARE,
            ((0.2, ORANGE), (0.5, RED)),
        ),
    ]


def _versions() -> list[Placed]:
    return [
        Placed(
            lines(
                "Model in use",
                "1 while a process has that version; the name begins with the time of publishing (UTC). All processes "
                "change within a minute.",
                Query(
                    f"max by (cluster, job, version) (forecast_model_info{where(**_MINE)})",
                    "{{cluster}} {{job}} {{version}}",
                ),
                unit=COUNT,
                most=1,
            ),
        ),
        Placed(
            lines(
                "Age of the model",
                "It falls once a night. A saw tooth that goes on rising is a run that failed.",
                Query(f"max by (cluster, job) (forecast_model_age_seconds{where(**_MINE)})", "{{cluster}} {{job}}"),
                unit=SECONDS,
                limits=_STALE[:1],
            ),
        ),
    ]


def _gate() -> list[Placed]:
    return [
        Placed(
            columns(
                "Gate of the last run, by resource",
                "loss ratio: tonight's recipe over the model in use on the days since its cut-off; above 1.02 it is "
                "held back (1). widening: factor by which 0.95 bounds were raised. coverage: share of yesterday's "
                "peaks of services within the bound issued for that day. identified: share of the load that is of "
                "services whose peak weight is known.",
                {
                    "loss ratio": Query(_of_run("forecast_train_issued_loss_ratio")),
                    "held back": Query(_of_run("forecast_train_held_back")),
                    "widening": Query(_of_run("forecast_train_bound_widening_ratio")),
                    "coverage": Query(_of_run("forecast_train_issued_coverage")),
                    "identified": Query(_of_run("forecast_train_identified_load_share")),
                },
                unit=RATIO,
                units={"coverage": SHARE, "identified": SHARE},
                hidden=("cluster",),
            ),
            width=16,
        ),
        Placed(
            lines(
                "Loss against the model in use",
                "Below 1 tonight's recipe would have been better than the model in use; above 1.02 it is held back.",
                Query(_of_run("forecast_train_issued_loss_ratio"), "{{cluster}} {{resource}}"),
                unit=RATIO,
                limits=((1.02, ORANGE),),
                least=None,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Time of the run, by stage",
                "Seconds that the last run spent, from reading the history to publishing.",
                Query(_of_run("forecast_train_duration_seconds", "stage"), "{{cluster}} {{stage}}"),
                unit=SECONDS,
                stacked=True,
            ),
            width=8,
        ),
        Placed(
            lines(
                "What it learned from",
                "Days of history, services and nodes that the model knows. Fewer than before: something is not "
                "scraped.",
                Query(f"max by (cluster) (forecast_train_history_days{where()})", "{{cluster}} days"),
                Query(f"max by (cluster) (forecast_train_services{where()})", "{{cluster}} services"),
                Query(f"max by (cluster) (forecast_train_nodes{where()})", "{{cluster}} nodes"),
                unit=COUNT,
            ),
            width=8,
        ),
        Placed(
            values(
                "Last good run",
                "When the last run ended that left its night's model in use.",
                Query(f"1000 * max (forecast_train_last_success_timestamp_seconds{where()})"),
                unit=DATE,
            ),
            width=8,
        ),
    ]


def _losses() -> list[Placed]:
    return [
        Placed(
            lines(
                "Backtest loss",
                "Pinball loss of the daily peaks of services, relative to the peaks, of the expected peak (0.5) and of "
                "the 0.95 bound (dashed). In use: as published with the model that the services have, and so of the "
                "nights before. Candidate (dotted): what tonight's recipe had in the last run's gate, which may have "
                "held it back. Lower is better; a step up after a night is a model that got worse.",
                Query(_loss_in_use("0.5"), "{{cluster}} {{resource}} 0.5 in use"),
                Query(_loss_in_use("0.95"), "{{cluster}} {{resource}} 0.95 in use", "dashed"),
                Query(_loss_of_candidate("0.5"), "{{cluster}} {{resource}} 0.5 candidate", "dotted"),
                Query(_loss_of_candidate("0.95"), "{{cluster}} {{resource}} 0.95 candidate", "dotted"),
                unit=SHARE,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Coverage of services' peaks",
                "Share of the daily peaks of services that lay within the 0.95 bound issued for that day. About 95 %; "
                "below 85 % the gate holds a resource back.",
                Query(_of_run("forecast_train_issued_coverage"), "{{cluster}} {{resource}}"),
                unit=SHARE,
                limits=((0.85, GREEN),),
                inverted=True,
                most=1,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Coverage of nodes",
                "Share of node half hours of the last 24 hours below the 0.95 bound, as Prometheus recorded it.",
                Query(f"forecast:node_coverage:1d{where(resource='$resource')}", "{{cluster}} {{resource}}"),
                unit=SHARE,
                limits=((0.85, GREEN),),
                inverted=True,
                most=1,
            ),
            width=8,
        ),
    ]


def _loss_in_use(quantile: str) -> str:
    return f"max {_RESOURCE} (forecast_backtest_loss{where(**_MINE, resource='$resource', quantile=quantile)})"


def _loss_of_candidate(quantile: str) -> str:
    return f"max {_RESOURCE} (forecast_train_candidate_loss{where(resource='$resource', quantile=quantile)})"


def _data() -> list[Placed]:
    by_job = "by (cluster, job)"
    return [
        Placed(
            lines(
                "Drift of the tables",
                "Differences between the tables and their rebuild at the last self-check; anything but 0 is a mistake "
                "of ours, and mended by the check.",
                Query(f"max {by_job} (forecast_self_check_drift{where(**_MINE)})", "{{cluster}} {{job}}"),
                unit=COUNT,
                limits=((1, RED),),
            ),
            width=8,
        ),
        Placed(
            lines(
                "Gaps of the last day",
                "Half hours of services with running pods that were not measured on the last day of the history.",
                Query(_of_run("forecast_train_data_gap_slots"), "{{cluster}} {{resource}}"),
                unit=COUNT,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Age of what is measured",
                "Seconds since usage was polled (solid) and since the API server was heard of (dashed).",
                Query(f"max {by_job} (forecast_usage_age_seconds{where(**_MINE)})", "{{cluster}} {{job}} usage"),
                Query(
                    f"max {by_job} (forecast_cluster_state_age_seconds{where(**_MINE)})",
                    "{{cluster}} {{job}} cluster",
                    "dashed",
                ),
                unit=SECONDS,
                limits=((600, ORANGE),),
            ),
            width=8,
        ),
        Placed(
            lines(
                "Nodes, and those that are measured",
                "Fewer measured than there are: exporters that are not scraped, or nodes whose names differ.",
                Query(f"min {by_job} (forecast_measured_nodes{where(**_MINE)})", "{{cluster}} {{job}} measured"),
                Query(
                    f"max {by_job} (forecast_cluster_objects{where(**_MINE, kind='nodes')})",
                    "{{cluster}} {{job}} all",
                    "dashed",
                ),
                unit=COUNT,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Pods, and those of unknown services",
                "Unknown ones count by their requests until the next night.",
                Query(
                    f"max {by_job} (forecast_cluster_objects{where(**_MINE, kind='pods')})",
                    "{{cluster}} {{job}} all",
                    "dashed",
                ),
                Query(f"max {by_job} (forecast_unknown_service_pods{where(**_MINE)})", "{{cluster}} {{job}} unknown"),
                unit=COUNT,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Nodes with recorded usage",
                "Nodes for which Prometheus recorded usage, by resource. A step down is a gap that begins.",
                Query(
                    f"count {_RESOURCE} (forecast:node_usage:30m{where(resource='$resource')})",
                    "{{cluster}} {{resource}}",
                ),
                unit=COUNT,
            ),
            width=8,
        ),
    ]
