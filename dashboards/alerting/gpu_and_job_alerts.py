"""What is wrong with GPUs and jobs: cards promised twice, inference without GPUs, deadlines that were missed."""

from __future__ import annotations

from typing import Final

from dashboards.alerting.alert import Alert, Severity
from dashboards.alerting.causes import unless

_SHORT_SECONDS: Final = 300
"""Of an hour: taking GPUs from a training that ends in good order takes some minutes (docs/use/tide.md)."""

_PROCESS: Final = "by (cluster, job)"
_POOL: Final = "by (cluster, job, pool)"


def gpu_and_job_alerts() -> list[Alert]:
    """Of the profiles gpu and job; where they do not run there are no series.

    Replicas that do not lead follow the cluster and count, too, so counters are not added up.
    """
    short = f"max {_POOL} (increase(forecast_tide_shortfall_seconds_total[1h])) > {_SHORT_SECONDS}"
    return [
        Alert(
            "ForecastGpuConflict",
            Severity.CRITICAL,
            f"max {_PROCESS} (forecast_gpu_device_conflicts) > 0",
            "5m",
            "{{ $labels.job }}: {{ $value }} cards are promised to more pods than they hold, or are gone",
            "Another scheduler or a pod with `nodeName` took cards, or a card broke under its pods. Pods may fail "
            "to start, or share what they asked for alone.",
            action="Find GPU nodes with fewer cards than before, and pods there that are not of our scheduler. "
            "Drain a node with a broken card.",
            page="../use/gpu.md#cards",
        ),
        Alert(
            "ForecastTideShortfall",
            Severity.CRITICAL,
            short,
            "0m",
            "Pool {{ $labels.pool }}: inference waited {{ $value | humanizeDuration }} of the last hour for GPUs that "
            "training held",
            "Training did not make room in time: demand was above the forecast, or moves failed.",
            action="Failed moves name the missing right or the workload. If demand was too high, raise "
            "`schedule.gpu.tide.reserve_gpus`.",
            commands=('forecast-scheduler tide --server "$SCHEDULER" --hours 12',),
            page="../use/tide.md",
        ),
        Alert(
            "ForecastTideLacking",
            Severity.WARNING,
            f"max {_POOL} (forecast_tide_lacking_gpus) > 0{unless('cluster, job, pool', short)}",
            "30m",
            "Pool {{ $labels.pool }}: inference will lack {{ $value }} GPUs",
            "The pool is too small for the forecast, even with every training stopped that may be stopped.",
            action="Add GPUs, run fewer replicas, or let more trainings be stopped. `forecast-scheduler tide` "
            "names the services.",
        ),
        Alert(
            "ForecastGpuNodeStrained",
            Severity.WARNING,
            f"max {_PROCESS} (forecast_gpu_unrelieved_nodes) > 0",
            "15m",
            "{{ $labels.job }}: {{ $value }} GPU nodes are strained by offline pods that cannot be taken off",
            "Load passes the ceiling kept for GPU work, and the offline pods there may not be evicted.",
            action="Evict them by hand, or let offline work have less.",
            page="../use/tide.md#idle-cpu",
        ),
        Alert(
            "ForecastJobDeadlineMissed",
            Severity.WARNING,
            f"max {_PROCESS} (increase(forecast_job_deadline_missed_total[1h])) > 0",
            "0m",
            '{{ $labels.job }}: {{ $value | printf "%.0f" }} job pods missed their deadline within the hour',
            "The pods had not succeeded at their deadline: held too long, slower than ever, or without room.",
            action="See the Events `DeadlineMissed`. Set an earlier latest start, a later deadline, or a "
            "higher priority.",
            commands=('forecast-scheduler jobs --server "$SCHEDULER" --hours 12',),
            page="../use/jobs.md#the-valley",
        ),
        Alert(
            "ForecastProviderBackingOff",
            Severity.WARNING,
            "max by (cluster, job, provider) (forecast_job_provider_backoff_seconds) > 0",
            "30m",
            "Provider {{ $labels.provider }} gets no pods for {{ $value | humanizeDuration }} more",
            "The provider rejected pods, did not start them, or lost its node, again and again. Jobs use the "
            "cluster's own nodes or wait.",
            action="`forecast_job_provider_failures_total` says which. Check its quota and health, `most_starting` "
            "and `start_timeout`.",
            page="../use/jobs.md#virtual-nodes",
        ),
    ]
