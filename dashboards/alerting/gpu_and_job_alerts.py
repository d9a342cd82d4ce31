"""What is wrong with GPUs and jobs: cards promised twice, inference without GPUs, deadlines that were missed."""

from __future__ import annotations

from typing import Final

from dashboards.alerting.alert import Alert, Severity

_SHORT_SECONDS: Final = 300
"""Of an hour: taking GPUs from a training that ends in good order takes some minutes (docs/use/tide.md)."""

_PROCESS: Final = "by (cluster, job)"
_POOL: Final = "by (cluster, job, pool)"


def gpu_and_job_alerts() -> list[Alert]:
    """Of the profiles gpu and job; where they do not run there are no series.

    Replicas that do not lead follow the cluster and count, too, so counters are not added up.
    """
    return [
        Alert(
            "ForecastGpuConflict",
            Severity.CRITICAL,
            f"max {_PROCESS} (forecast_gpu_device_conflicts) > 0",
            "5m",
            "{{ $labels.job }}: {{ $value }} cards are promised to more pods than they hold, or are gone",
            "Somebody else gives cards away beside us, or a device was lost under the pods that have it.",
        ),
        Alert(
            "ForecastTideShortfall",
            Severity.CRITICAL,
            f"max {_POOL} (increase(forecast_tide_shortfall_seconds_total[1h])) > {_SHORT_SECONDS}",
            "0m",
            "Pool {{ $labels.pool }}: inference waited {{ $value | humanizeDuration }} of the last hour for GPUs that "
            "training held",
            "Training did not make room in time: demand came above what was predicted, or moves failed. /v1/tide has "
            "the moves and their reasons.",
        ),
        Alert(
            "ForecastTideLacking",
            Severity.WARNING,
            f"max {_POOL} (forecast_tide_lacking_gpus) > 0",
            "30m",
            "Pool {{ $labels.pool }}: inference will lack {{ $value }} GPUs",
            "Even with every training stopped that may be stopped the pool is too small for what is predicted.",
        ),
        Alert(
            "ForecastGpuNodeStrained",
            Severity.WARNING,
            f"max {_PROCESS} (forecast_gpu_unrelieved_nodes) > 0",
            "15m",
            "{{ $labels.job }}: {{ $value }} GPU nodes are strained by offline pods that cannot be taken off",
            "Their load passes the ceiling kept for GPU work, and the offline pods there may not be evicted.",
        ),
        Alert(
            "ForecastJobDeadlineMissed",
            Severity.WARNING,
            f"max {_PROCESS} (increase(forecast_job_deadline_missed_total[1h])) > 0",
            "0m",
            '{{ $labels.job }}: {{ $value | printf "%.0f" }} job pods missed their deadline within the hour',
            "They had not succeeded when it came. /v1/jobs/plan says what was held and why.",
        ),
        Alert(
            "ForecastProviderBackingOff",
            Severity.WARNING,
            "max by (cluster, job, provider) (forecast_job_provider_backoff_seconds) > 0",
            "30m",
            "Provider {{ $labels.provider }} gets no pods for {{ $value | humanizeDuration }} more",
            "It rejected pods, did not start them, or lost their node, again and again. Jobs wait for nodes instead.",
        ),
    ]
