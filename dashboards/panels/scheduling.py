"""Who schedules, how fast, and by what? Our own loops, the extender beside kube-scheduler, the webhook.

rebalancing.py has the row of who moves what already runs.
"""

from __future__ import annotations

from typing import Final

from dashboards.panels.layout import Board, Part, Placed, figure
from dashboards.panels.marks import marks
from dashboards.panels.plots import ORANGE, RED, Limits, Query, columns, heat_map, lines, values
from dashboards.panels.rebalancing import rebalancing
from dashboards.panels.selecting import of_leader, of_placing, variable, where
from dashboards.panels.units import COUNT, PER_SECOND, SECONDS, SHARE

LEVELS: Final = {0: "fresh", 1: "no live correction", 2: "old model", 3: "requests", 4: "neutral"}
"""docs/use/scorer.md, the degradation ladder."""

_DEADLINE: Final[Limits] = ((0.1, ORANGE), (0.2, RED))
"""Seconds; the extender's own deadline is 0.2 (docs/use/extender.md)."""

_RATE: Final = "[$__rate_interval]"


def scheduling(hot: float) -> Board:
    """The dashboard."""
    return Board(
        uid="forecast-scheduling",
        title="Forecast / Scheduling",
        text="Throughput, latency, queue and decisions of our loops and the extender, and how fresh what they know is.",
        parts=[
            Part("Now", _now()),
            Part("Throughput of our loops", _throughput()),
            Part("Latency by stage", _latency()),
            Part("Queue", _queue()),
            Part("Decisions: by policy and level, advice against what was done", _decisions()),
            Part("The extender and the webhook", _answers()),
            Part("The rebalancer", rebalancing(hot)),
        ],
        variables=[variable(name) for name in ("cluster", "job", "profile")],
        annotations=marks(),
        since="now-6h",
    )


def rate_of(counter: str, by: str, **labels: str) -> str:
    """Per second, added up."""
    return f"sum by (cluster, {by}) (rate({counter}{where(**labels)}{_RATE}))"


def seconds_of(histogram: str, by: str, quantile: str, **labels: str) -> str:
    """A quantile of a histogram."""
    return f"histogram_quantile({quantile}, {rate_of(f'{histogram}_bucket', f'{by}, le' if by else 'le', **labels)})"


def _of_placing(gauge: str, by: str = "") -> str:
    """Each replica that owns nodes has pods of its own."""
    selected, labels = gauge + where(job="$job"), f"cluster, job{by and f', {by}'}"
    owns = f"{selected} and on (cluster, job, instance) forecast_shards_owned{where()} > 0"
    return f"(sum by ({labels}) ({owns}) or {_of_leaders(gauge, by)})"


def _of_leaders(gauge: str, by: str = "") -> str:
    # `max`: for the moment in which a Lease changes hands there may be two of a deployment.
    return f"max by (cluster, job{by and f', {by}'}) ({of_leader(gauge + where(job='$job'))})"


def _now() -> list[Placed]:
    mine = where(job="$job")
    worst = values(
        "Degradation",
        "The worst level of any process: 0 fresh model and fresh usage, 1 no live correction, 2 an old model, 3 "
        "requests only, 4 neutral. Anything but 0 for long is worth a look at the log, or at /v1/status of scorer and "
        "schedule.",
        Query(f"max (forecast_degradation_level{where(job='$job')})"),
        unit=COUNT,
        limits=((1, ORANGE), (3, RED)),
        words=LEVELS,
    )
    return [
        Placed(worst, width=4, height=4),
        figure(
            "Replicas that schedule",
            "Leaders of our own loops: one for each deployment; 0 = no replica leads. Where replicas share the "
            "nodes, all that own some place pods.",
            f"sum (forecast_leader{where(job='$job')})",
        ),
        figure(
            "Pods that wait",
            "All parts of the queue: active, backing off, unschedulable, and gated ones that wait for a gang, for "
            "their planned start, or for somebody else's gate. No data: no replica schedules.",
            f"sum ({_of_placing('forecast_pending_pods', 'queue')})",
        ),
        figure(
            "Gangs starving",
            "Seconds since the first vain attempt at the complete gang that has waited longest; 0 = none waits.",
            f"max (forecast_gang_longest_wait_seconds{where(job='$job')})",
            SECONDS,
            ((600, ORANGE), (3600, RED)),
        ),
        figure(
            "Loop last went round",
            "Seconds since the scheduling loop was last seen alive; it goes round every second even when idle.",
            f"max (forecast_scheduling_loop_age_seconds{where(job='$job')})",
            SECONDS,
            ((10, ORANGE), (60, RED)),
        ),
        figure(
            "Overcommitted nodes",
            "Nodes on which pods request more than is allocatable, and that were not repaired yet.",
            f"sum (max by (cluster, job, cause) (forecast_overcommitted_nodes{mine}))",  # every replica counts them
            COUNT,
            ((1, RED),),
        ),
    ]


def _throughput() -> list[Placed]:
    attempts = rate_of("forecast_schedule_attempts_total", "result", job="$job", profile="$profile")
    of_profile = rate_of(
        "forecast_schedule_attempts_total", "profile", job="$job", profile="$profile", result="scheduled"
    )
    evictions = rate_of("forecast_preemption_victims_total", "job", job="$job")
    repairs = rate_of("forecast_overcommit_evictions_total", "outcome", job="$job")
    return [
        Placed(
            lines(
                "Attempts by result",
                "Pods tried per second: scheduled = bound; unschedulable = no node had room, tried again when "
                "something changes; error = something failed, seldom more than a few.",
                Query(attempts, "{{cluster}} {{result}}"),
                unit=PER_SECOND,
                stacked=True,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Pods bound by profile",
                "Pods bound per second by the scheduler name that they ask for.",
                Query(of_profile, "{{cluster}} {{profile}}"),
                unit=PER_SECOND,
                stacked=True,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Evictions",
                "Pods evicted per second for ones of higher priority, and to repair nodes that others overcommitted.",
                Query(evictions, "{{cluster}} preempted"),
                Query(repairs, "{{cluster}} repair: {{outcome}}"),
                unit=PER_SECOND,
            ),
            width=8,
        ),
    ]


def _latency() -> list[Placed]:
    stages = "forecast_scheduling_duration_seconds"
    pods = "forecast_pod_scheduling_seconds"
    mine = {"job": "$job"}
    of_stage = (
        f"sum by (le) (increase({stages}_bucket{where(**mine, stage='cycle|prioritize|score')}[$__rate_interval]))"
    )
    return [
        Placed(
            lines(
                "Stages, 99 of 100 within",
                "Time that one stage takes, by process. Of our loops: cycle = filters and scores of a batch, bind = "
                "the API server's answer. Of the extender: filter, prioritize, and decode and encode around them.",
                Query(seconds_of(stages, "job, stage", "0.99", **mine), "{{job}} {{stage}}"),
                unit=SECONDS,
                limits=_DEADLINE,
            ),
        ),
        Placed(
            lines(
                "Stages, half within",
                "The same of the median: what a usual pod costs, where the panel beside it shows the worst.",
                Query(seconds_of(stages, "job, stage", "0.5", **mine), "{{job}} {{stage}}"),
                unit=SECONDS,
            ),
        ),
        Placed(
            heat_map(
                "Deciding on a node",
                "How long filtering and scoring took: cycle of our loops, prioritize of the extender, score of the "
                "scorer. A second band above the first is a second kind of pod or a busy machine.",
                of_stage,
                unit=SECONDS,
            ),
        ),
        Placed(
            lines(
                "From first seen to bound",
                "All of a pod's waiting, attempts included: half and 99 of 100 of them are bound within.",
                Query(seconds_of(pods, "profile", "0.5", **mine, profile="$profile"), "{{profile}} 0.5"),
                Query(seconds_of(pods, "profile", "0.99", **mine, profile="$profile"), "{{profile}} 0.99", "dashed"),
                unit=SECONDS,
            ),
        ),
    ]


def _queue() -> list[Placed]:
    came = f"rate(forecast_queue_incoming_pods_total{where(job='$job')}{_RATE})"
    in_flight, assumed = (_of_placing(f"forecast_{name}") for name in ("bindings_in_flight", "assumed_pods"))
    return [
        Placed(
            lines(
                "Pods that wait, by part of the queue",
                "active: to be tried next; backoff: tried in vain a moment ago; unschedulable: until something "
                "changes; gated: until a gang is complete, a planned start has come, or a gate goes.",
                Query(
                    f"sum by (cluster, queue) ({_of_placing('forecast_pending_pods', 'queue')})",
                    "{{cluster}} {{queue}}",
                ),
                unit=COUNT,
                stacked=True,
            ),
            width=8,
        ),
        Placed(
            lines(
                "What brings pods into it",
                "Pods per second that came into a part of the queue, by what brought them there.",
                Query(
                    f"sum by (cluster, event, queue) ({of_placing(came)})",
                    "{{event}} -> {{queue}}",
                ),
                unit=PER_SECOND,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Bindings under way, and gangs",
                "In flight: asked of the API server and not answered. Assumed: answered or not, and not yet seen in "
                "the watch; if it stays up while nothing is pending the watch is behind. Gangs by phase.",
                Query(f"sum by (cluster) ({in_flight})", "{{cluster}} in flight"),
                Query(f"sum by (cluster) ({assumed})", "{{cluster}} assumed"),
                Query(
                    f"sum by (cluster, phase) ({_of_leaders('forecast_gangs', 'phase')})",
                    "{{cluster}} gangs {{phase}}",
                    "dashed",
                ),
                unit=COUNT,
            ),
            width=8,
        ),
    ]


def _decisions() -> list[Placed]:
    outcome = rate_of("forecast_decisions_total", "mode, outcome", job="$job")
    level = rate_of("forecast_decisions_by_level_total", "mode, level", job="$job")
    followed, judged = (
        f"sum by (cluster, mode) (increase(forecast_decisions_total{where(job='$job', outcome=which)}[$__range]))"
        for which in ("as_advised", "as_advised|elsewhere")
    )
    return [
        Placed(
            lines(
                "Pods by policy",
                "Pods bound per second by the policy that filters, scores and deadlines were taken from; default = the "
                "settings.",
                Query(rate_of("forecast_policy_pods_total", "job, policy", job="$job"), "{{job}} {{policy}}"),
                unit=PER_SECOND,
                stacked=True,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Decisions by level of degradation",
                "Pods bound after our advice per second, by what the advice was made of: 0 fresh model and usage, 1 no "
                "live correction, 2 old model, 3 requests, 4 neutral. A shadow's advice was told to nobody.",
                Query(level, "{{cluster}} {{mode}} level {{level}}"),
                unit=PER_SECOND,
                stacked=True,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Level of degradation by process",
                "The level of the cluster as a whole; steps up are a model that gets old or a Prometheus that is away.",
                Query(f"max by (cluster, job) (forecast_degradation_level{where(job='$job')})", "{{cluster}} {{job}}"),
                unit=COUNT,
                limits=((1, ORANGE), (3, RED)),
                most=4,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Advice against what was done",
                "Pods per second that kube-scheduler bound where we advised, elsewhere, or without being advised. A "
                "shadow's advice is told to nobody: as_advised is there how often both agree by themselves. Of "
                "several extenders each counts as not_advised what another one advised on.",
                Query(outcome, "{{cluster}} {{mode}} {{outcome}}"),
                unit=PER_SECOND,
                stacked=True,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Share bound where we advised",
                "Of the pods we advised on, over the time that is shown. active: how often the forecast prevailed over "
                "kube-scheduler's other scores. shadow: one that would only repeat kube-scheduler is at 100 %, the "
                "difference is what placing by the forecast would change; `forecast-scheduler report` says what it is "
                "worth (docs/start/shadow.md).",
                Query(f"{followed} / ({judged} > 0) or {judged} * 0", "{{cluster}} {{mode}}"),
                unit=SHARE,
                most=1,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Guessed node",
                "Pods per second whose node was guessed right or wrong before their binding was seen. Many wrong ones: "
                "extender.weight is not that of the KubeSchedulerConfiguration.",
                Query(rate_of("forecast_extender_charges_total", "outcome", job="$job"), "{{cluster}} {{outcome}}"),
                unit=PER_SECOND,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Nodes by level of degradation",
                "Nodes whose usage is not measured are one level worse than the cluster.",
                Query(
                    f"max by (cluster, level) (forecast_degradation_level_nodes{where(job='$job')})",
                    "{{cluster}} level {{level}}",
                ),
                unit=COUNT,
                stacked=True,
            ),
        ),
        Placed(
            columns(
                "Policies in effect",
                "Pods bound by each policy since its process started, and whether the document that was seen last is "
                "in effect (1) or an older one is (0).",
                {
                    "pods": Query(f"sum by (cluster, job, policy) (forecast_policy_pods_total{where(job='$job')})"),
                    "valid": Query(f"min by (cluster, job) (forecast_policy_document_valid{where(job='$job')})"),
                },
                unit=COUNT,
            ),
        ),
    ]


def _answers() -> list[Placed]:
    requests = "forecast_extender_http_request_duration_seconds"
    return [
        Placed(
            lines(
                "Extender: questions of kube-scheduler",
                "Per second by verb and outcome. late, failed and not_ready ones got a neutral answer: the pod is "
                "placed as without us.",
                Query(rate_of("forecast_extender_requests_total", "verb, outcome", job="$job"), "{{verb}} {{outcome}}"),
                unit=PER_SECOND,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Extender and scorer: time of an answer",
                "99 of 100 answers are out within, by route.",
                Query(seconds_of(requests, "route", "0.99", job="$job"), "extender {{route}}"),
                Query(
                    seconds_of("forecast_scorer_http_request_duration_seconds", "route", "0.99", job="$job"),
                    "{{route}}",
                    "dashed",
                ),
                unit=SECONDS,
                limits=_DEADLINE,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Webhook: questions of the API server",
                "Per second by outcome; not_ready, failed and malformed ones are left to failurePolicy. Dashed: 99 of "
                "100 are answered within so many seconds.",
                Query(rate_of("forecast_webhook_reviews_total", "outcome"), "{{cluster}} {{outcome}}"),
                Query(seconds_of("forecast_webhook_duration_seconds", "", "0.99"), "seconds", "dashed"),
                unit=COUNT,
            ),
            width=8,
        ),
    ]
