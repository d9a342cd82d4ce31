"""What is wrong with advice: pods are held for too long, come without advice, or go elsewhere."""

from __future__ import annotations

from typing import Final

from dashboards.alerting.alert import Alert, Severity
from dashboards.alerting.causes import JOB, REPLICA, gone_advisor, held_pods, unheard, unless

_PROCESS: Final = f"by ({JOB})"


def advisor_alerts() -> list[Alert]:
    """Of the webhook, which holds pods, and of the advisor, which names their nodes."""
    return [
        Alert(
            "ForecastPodsHeld",
            Severity.CRITICAL,
            held_pods(),
            "0m",  # the figure is a duration
            "A pod has been held in SchedulingGated for {{ $value | humanizeDuration }}",
            "The webhook gives new pods our gate `forecast-scheduler.io/advice`; the advisor removes it, and if no "
            "advisor does, each replica of the webhook. Here neither does: both are gone, or the API server refuses "
            "their patches. Every process of ours that follows the cluster reports such pods; without any, "
            "kube-state-metrics, which does not know by which gate they are held.",
            action="Release all held pods with the first command; your kubeconfig must be allowed to patch pods. "
            "`status` says which part is down. If both run, their logs say why the API server refuses: rights, a "
            "policy, 429. `explain` names the gates of a pod that is still held: other controllers have their own.",
            commands=(
                "forecast-scheduler advise --release",
                "forecast-scheduler status",
                "kubectl get pods -A --field-selector spec.nodeName=",
                "forecast-scheduler explain shop/cart-7d9c5b6f4-x2x7p",
            ),
            page="../../EMERGENCY.md#pods-hang-in-schedulinggated",
        ),
        Alert(
            "ForecastUnadvised",
            Severity.WARNING,
            f"sum {_PROCESS} (increase(forecast_webhook_unadvised_pods_total[5m])) > 0"
            f"{unless('cluster', held_pods(), gone_advisor(), _unfit_advisor())}",
            "2m",
            "{{ $labels.job }}: {{ $value | humanize }} pods came without advice in five minutes",
            "No advisor renewed its Lease, or the webhook may not remove gates. New pods are not held; "
            "kube-scheduler places them without advice.",
            action="Label `because`: `no_advisor`, start the advisor; `cannot_release`, let the webhook list, "
            "watch and patch pods (`deploy/base/advisor`).",
        ),
        Alert(
            "ForecastNominationsIgnored",
            Severity.WARNING,
            f"min {_PROCESS} (forecast_nominations_followed and on ({REPLICA}) forecast_leader == 1) == 0"
            f"{unless(JOB, unheard())}",
            "5m",
            "{{ $labels.job }}: nominations are not followed; held pods prefer their nodes",
            "Three canaries in a row went elsewhere, or the API server did not store nominations. Held pods get "
            "preferred node affinity instead, which other scores may outweigh.",
            action="Outcomes of `forecast_canaries_total`: `refused`, grant `pods/status`; `elsewhere`, look for "
            "plugins or extenders of kube-scheduler that reject the nodes. One canary that is followed "
            "brings nominations back.",
            page="../use/advisor.md#are-nominations-followed",
        ),
    ]


def _unfit_advisor() -> str:
    """The advisor runs, and cannot read the cluster or has no leader. By cluster."""
    advisor = '{job="forecast-scheduler-advisor"}'
    return (
        f"max by (cluster) (forecast_leader{advisor}) == 0 or max by (cluster) (forecast_ready{advisor}) == 0"
        f" or min by (cluster) (forecast_cluster_state_age_seconds{advisor}) > 30"
    )
