"""Are GPUs used and kept usable, does training make room in time, and do jobs start and end when they should?"""

from __future__ import annotations

from typing import Final

from dashboards.panels.layout import Board, Part, Placed, figure
from dashboards.panels.marks import marks
from dashboards.panels.plots import ORANGE, RED, Query, bars, heat_map, lines
from dashboards.panels.scheduling import rate_of, seconds_of
from dashboards.panels.selecting import variable, where
from dashboards.panels.units import BYTES, CORES, COUNT, PER_SECOND, SECONDS, SHARE

_MODEL: Final = "by (cluster, model)"
_POOL: Final = "by (cluster, pool)"
_MINE: Final = {"job": "$job"}


def gpu_and_jobs() -> Board:
    """The dashboard."""
    return Board(
        uid="forecast-gpu-and-jobs",
        title="Forecast / GPU and jobs",
        text="GPUs: allocation, fragmentation, the tide. Jobs: start latency, deadlines, storms, providers.",
        parts=[
            Part("Now", _now()),
            Part("GPUs: allocation and fragmentation", _gpus()),
            Part("The tide: plan against actual", _tide()),
            Part("Idle cores of GPU nodes, and claims", _beside()),
            Part("Jobs: start latency and deadlines", _jobs()),
            Part("Storms, and virtual nodes", _storms()),
        ],
        variables=[variable(name) for name in ("cluster", "job", "pool")],
        annotations=marks(),
        since="now-24h",
    )


def _max(metric: str, by: str, **labels: str) -> str:
    return f"max by (cluster, {by}) ({metric}{where(**_MINE, **labels)})"


def _counted_by_all(counter: str, window: str, by: str = "") -> str:
    """By cluster, and by further labels. Replicas that do not lead follow the cluster and count, too: the one that
    counted most has all."""
    more = by and f", {by}"
    each = f"max by (cluster, job{more}) (increase({counter}{where(**_MINE)}[{window}]))"
    return f"sum by (cluster{more}) ({each})"


def _now() -> list[Placed]:
    cards = f"sum (max {_MODEL} (forecast_gpu_devices{where(**_MINE)}))"
    held = f"sum (max {_MODEL} (forecast_gpu_allocated_thousandths{where(**_MINE)})) / 1000"
    return [
        figure(
            "GPUs allocated",
            "Share of all cards that pods hold, shares of cards counted as such.",
            f"{held} / ({cards} > 0) or vector(0)",
            SHARE,
        ),
        figure(
            "Unusable idle GPUs",
            "Idle cards, as a share of all, that a pod as they come here could not use: broken "
            "into pieces, or on nodes without cores or memory left.",
            f"max (forecast_gpu_fragmented_share{where(**_MINE)})",
            SHARE,
            ((0.05, ORANGE), (0.15, RED)),
        ),
        figure(
            "GPUs given out twice",
            "Cards of which pods have more than there is, or that are gone: always 0.",
            f"max (forecast_gpu_device_conflicts{where(**_MINE)})",
            COUNT,
            ((1, RED),),
        ),
        figure(
            "GPUs inference will lack",
            "Even with every training stopped that may be stopped.",
            f"sum (max {_POOL} (forecast_tide_lacking_gpus{where(**_MINE, pool='$pool')}))",
            COUNT,
            ((1, RED),),
        ),
        figure(
            "Deadlines missed",
            "Job pods that had not ended at their deadline, in the time that is shown.",
            f"round(sum ({_counted_by_all('forecast_job_deadline_missed_total', '$__range')}))",
            COUNT,
            ((1, ORANGE),),
        ),
        figure(
            "Jobs held for the valley",
            "Job pods that wait for their planned start.",
            f"max (forecast_job_held_pods{where(**_MINE)})",
        ),
    ]


def _gpus() -> list[Placed]:
    thousandths = "forecast_gpu_allocated_thousandths"
    return [
        Placed(
            lines(
                "Cards, and how many are held",
                "By model: cards that nodes have (dashed) and what pods hold of them (solid), shares added up.",
                Query(f"{_max(thousandths, 'model')} / 1000", "{{model}} held"),
                Query(_max("forecast_gpu_devices", "model"), "{{model}} cards", "dashed"),
                unit=COUNT,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Fragmentation",
                "Idle cards that a pod drawn from those that really come here is expected not to be able to use: as a "
                "share of all cards (solid). Placement keeps it low; it rises as the cluster fills with odd sizes.",
                Query(f"max by (cluster) (forecast_gpu_fragmented_share{where(**_MINE)})", "{{cluster}} all models"),
                Query(
                    f"{_max('forecast_gpu_fragmented_thousandths', 'model')} / 1000 "
                    f"/ ({_max('forecast_gpu_devices', 'model')} > 0)",
                    "{{model}}",
                    "dashed",
                ),
                unit=SHARE,
                limits=((0.05, ORANGE), (0.15, RED)),
            ),
            width=8,
        ),
        Placed(
            bars(
                "Scarcity of models",
                "What is wanted by pods that cannot do with every model, 0 to 1. Pods that name no model go where it "
                "is lowest.",
                Query(_max("forecast_gpu_card_scarcity_ratio", "model"), "{{model}}"),
                unit=SHARE,
                limits=((0.5, ORANGE), (0.8, RED)),
                most=1,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Cards that pods wait for",
                "By model, of pods that cannot do with every model.",
                Query(f"{_max('forecast_gpu_card_waiting_thousandths', 'model')} / 1000", "{{model}}"),
                unit=COUNT,
            ),
            width=8,
        ),
        Placed(
            lines(
                "From first seen to bound, GPU pods",
                "Half and 99 of 100 GPU pods are bound within, waiting for room included.",
                Query(_bound_within("0.5", "gpu-scheduler"), "{{profile}} 0.5"),
                Query(_bound_within("0.99", "gpu-scheduler"), "{{profile}} 0.99", "dashed"),
                unit=SECONDS,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Gangs by how close they sit",
                "Attempts to place a gang with preferred levels, per second, by the level of the domain that could "
                "hold it: 1 = the tightest it names, 0 = none.",
                Query(rate_of("forecast_gpu_gang_domains_total", "level", **_MINE), "{{cluster}} level {{level}}"),
                unit=PER_SECOND,
            ),
            width=8,
        ),
    ]


def _bound_within(quantile: str, profile: str) -> str:
    return seconds_of("forecast_pod_scheduling_seconds", "profile", quantile, **_MINE, profile=profile)


def _tide() -> list[Placed]:
    pool = {"pool": "$pool"}
    return [
        Placed(
            lines(
                "Inference: expected and actual GPUs",
                "Held by inference (solid), expected in this half hour (dashed), and kept free for it, which is that "
                "with margins (dotted). Solid above dotted: demand came above the forecast.",
                Query(_max("forecast_tide_inference_gpus", "pool", **pool), "{{pool}} held"),
                Query(_max("forecast_tide_inference_expected_gpus", "pool", **pool), "{{pool}} expected", "dashed"),
                Query(_max("forecast_tide_inference_needed_gpus", "pool", **pool), "{{pool}} kept", "dotted"),
                unit=COUNT,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Training: planned and actual GPUs",
                "Held by training (solid) and what it is to have after the last plan (dashed). Solid above dashed is "
                "training that drains; below, training whose pods wait or start.",
                Query(_max("forecast_tide_training_gpus", "pool", **pool), "{{pool}} held"),
                Query(_max("forecast_tide_training_planned_gpus", "pool", **pool), "{{pool}} planned", "dashed"),
                Query(_max("forecast_tide_capacity_gpus", "pool", **pool), "{{pool}} all GPUs", "dotted"),
                unit=COUNT,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Shortfall",
                "Share of the time in which pods of inference waited for GPUs that training held, and GPUs they wait "
                "for. Always 0 is the aim.",
                Query(
                    "max by (cluster, pool) "
                    f"(rate(forecast_tide_shortfall_seconds_total{where(**_MINE, **pool)}[$__rate_interval]))",
                    "{{pool}} share of time",
                ),
                Query(_max("forecast_tide_inference_waiting_gpus", "pool", **pool), "{{pool}} waited for", "dashed"),
                unit=COUNT,
                limits=((0.1, RED),),
            ),
            width=8,
        ),
        Placed(
            lines(
                "Moves of trainings",
                "In the last hour. shrink, take: make room; resume, grow: use what inference leaves. changed: somebody "
                "else changed the workload first; failed ones are tried again.",
                Query(
                    f"sum by (cluster, kind, outcome) (increase(forecast_tide_moves_total{where(**_MINE)}[1h]))"
                    f" or label_replace(max by (cluster) (forecast_tide_has_forecast{where(**_MINE)}) * 0,"
                    ' "kind", "none", "", "")',
                    "{{cluster}} {{kind}} {{outcome}}",
                ),
                unit=COUNT,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Is there a forecast, and could all be read?",
                "has forecast: 0 = training may not grow, since nothing is known of the evening. unread: workloads of "
                "training that could not be read; /v1/tide names the missing right.",
                Query(f"max by (cluster) (forecast_tide_has_forecast{where(**_MINE)})", "{{cluster}} has forecast"),
                Query(
                    f"max by (cluster) (forecast_tide_unread_workloads{where(**_MINE)})", "{{cluster}} unread", "dashed"
                ),
                unit=COUNT,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Moves beyond the day's cap",
                "Moves that inference needed though the moves of the day were used up, in the last hour.",
                Query(
                    f"sum by (cluster) (increase(forecast_tide_moves_beyond_cap_total{where(**_MINE)}[1h]))",
                    "{{cluster}}",
                ),
                unit=COUNT,
                limits=((1, ORANGE),),
            ),
            width=8,
        ),
    ]


def _beside() -> list[Placed]:
    mine = where(**_MINE)
    return [
        Placed(
            lines(
                "Cores of GPU nodes",
                "Cores that offline pods have on nodes with GPUs, and cores that are kept from them for GPUs that are "
                "idle.",
                Query(f"max by (cluster) (forecast_gpu_offline_cpu_cores{mine})", "{{cluster}} offline pods"),
                Query(f"max by (cluster) (forecast_gpu_kept_cpu_cores{mine})", "{{cluster}} kept", "dashed"),
                unit=CORES,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Strained GPU nodes",
                "Nodes with offline pods whose CPU passes the ceiling or soon will, and those of them whose offline "
                "pods cannot be evicted. Evictions per second.",
                Query(f"max by (cluster) (forecast_gpu_strained_nodes{mine})", "{{cluster}} strained"),
                Query(f"max by (cluster) (forecast_gpu_unrelieved_nodes{mine})", "{{cluster}} unrelieved"),
                Query(rate_of("forecast_gpu_offline_evictions_total", "outcome", **_MINE), "{{outcome}}", "dashed"),
                unit=COUNT,
            ),
            width=8,
        ),
        Placed(
            lines(
                "ResourceClaims",
                "Claims by what became of them: open, in flight (decided and not written yet), allocated.",
                Query(_max("forecast_gpu_dra_claims", "state"), "{{cluster}} {{state}}"),
                unit=COUNT,
                stacked=True,
            ),
            width=8,
        ),
    ]


def _jobs() -> list[Placed]:
    profile = "job-scheduler"
    buckets = (
        "sum by (le) (increase(forecast_pod_scheduling_seconds_bucket"
        f"{where(**_MINE, profile=profile)}[$__rate_interval]))"
    )
    on_time = [
        Query(
            _counted_by_all(f"forecast_job_{what}_total", "1h"),
            f"{{{{cluster}}}} {words}",
            style,
        )
        for what, words, style in (
            ("deadline_met", "deadlines met", ""),
            ("deadline_missed", "deadlines missed", "dashed"),
            ("latest_start_met", "latest starts met", ""),
            ("latest_start_missed", "latest starts missed", "dashed"),
        )
    ]
    return [
        Placed(
            lines(
                "From first seen to bound, job pods",
                "Half and 99 of 100 job pods have a node within; jobs that are held for the valley count, too.",
                Query(_bound_within("0.5", profile), "{{profile}} 0.5"),
                Query(_bound_within("0.99", profile), "{{profile}} 0.99", "dashed"),
                unit=SECONDS,
            ),
            width=8,
        ),
        Placed(
            heat_map(
                "Start latency of job pods",
                "A band at seconds are jobs that start at once, one at hours those that were held for the valley.",
                buckets,
                unit=SECONDS,
            ),
            width=8,
        ),
        Placed(
            lines(
                "On time",
                "Job pods in the last hour that ended before their deadline, or started before their latest start, and "
                "those that did not (dashed).",
                *on_time,
                unit=COUNT,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Held for the valley",
                "Job pods that wait for their planned start, and by how much half of those that were let go had "
                "waited.",
                Query(f"max by (cluster) (forecast_job_held_pods{where(**_MINE)})", "{{cluster}} held"),
                unit=COUNT,
            ),
            width=8,
        ),
        Placed(
            lines(
                "How long they were held",
                "Half and 99 of 100 of the job pods with slack that got a node lately were held as long.",
                Query(_held("0.5"), "0.5"),
                Query(_held("0.99"), "0.99", "dashed"),
                unit=SECONDS,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Dominant share of owners",
                "Largest share that an owner's jobs request of any resource; in a drf queue owners end up alike.",
                Query(_max("forecast_queue_owner_dominant_share", "queue, owner"), "{{queue}} {{owner}}"),
                unit=SHARE,
            ),
            width=8,
        ),
    ]


def _held(quantile: str) -> str:
    """Of an hour: jobs with slack are few."""
    grown = f"increase(forecast_job_held_seconds_bucket{where(**_MINE)}[1h])"
    return f"histogram_quantile({quantile}, sum by (cluster, le) ({grown}))"


def _storms() -> list[Placed]:
    return [
        Placed(
            lines(
                "Job pods that are expected",
                "Pods that CronJobs and learned bursts will create within a minute and within an hour.",
                Query(_max("forecast_job_expected_arrivals", "ahead"), "{{cluster}} within {{ahead}}"),
                unit=COUNT,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Storms: foreseen and come",
                "Pods that were foreseen in storms that ended in the last hour, and those of them that had a node by "
                "the end. Far fewer: room was kept for nothing; the same: it was worth it.",
                Query(
                    _counted_by_all("forecast_job_storm_expected_pods_total", "1h"), "{{cluster}} foreseen", "dashed"
                ),
                Query(_counted_by_all("forecast_job_storm_arrived_pods_total", "1h"), "{{cluster}} came"),
                unit=COUNT,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Room kept for storms: CPU and pods",
                "Kept free of other jobs: cores, and places for pods (dashed).",
                Query(_max("forecast_job_headroom_reserved", "resource", resource="cpu"), "{{cluster}} cores"),
                Query(
                    _max("forecast_job_headroom_reserved", "resource", resource="pods"), "{{cluster}} pods", "dashed"
                ),
                unit=COUNT,
            ),
            width=4,
        ),
        Placed(
            lines(
                "Room kept for storms: memory",
                "Kept free of other jobs.",
                Query(_max("forecast_job_headroom_reserved", "resource", resource="memory"), "{{cluster}}"),
                unit=BYTES,
            ),
            width=4,
        ),
        Placed(
            lines(
                "Pods at providers",
                "Pods on virtual nodes, by provider; starting: bound and not started yet (dashed). Many that start and "
                "few that run: the provider is in trouble.",
                Query(_max("forecast_job_provider_pods", "provider"), "{{provider}}"),
                Query(_max("forecast_job_provider_starting", "provider"), "{{provider}} starting", "dashed"),
                unit=COUNT,
            ),
            width=8,
        ),
        Placed(
            lines(
                "Failures of providers",
                "In the last hour: pods rejected, not started in time, or whose node was lost before.",
                Query(
                    _counted_by_all("forecast_job_provider_failures_total", "1h", "provider, failure"),
                    "{{provider}} {{failure}}",
                ),
                unit=COUNT,
                limits=((1, ORANGE),),
            ),
            width=8,
        ),
        Placed(
            lines(
                "What it costs",
                "Of the pods at providers in an hour, by the prices in the settings; their currency.",
                Query(_max("forecast_job_provider_spend_per_hour", "provider"), "{{provider}}"),
                unit=COUNT,
            ),
            width=8,
        ),
    ]
