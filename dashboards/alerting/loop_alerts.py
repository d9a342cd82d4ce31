"""What is wrong with who schedules: our own loops, the extender beside kube-scheduler, policies, and the webhook."""

from __future__ import annotations

from typing import Final

from dashboards.alerting.alert import Alert, Severity

_STALLED_SECONDS: Final = 60
"""The loop goes round every second, a cycle with preemption takes seconds at most; /healthz has the same limit."""

_STARVING_SECONDS: Final = 3600
"""A gang's own timeout is a minute: others have gone first for an hour by then."""

_ERRORS: Final = 0.05
"""Share of attempts. Single errors are conflicts with other writers and are tried again."""

_NEUTRAL: Final = 0.05
"""Share of requests. One late answer in twenty costs kube-scheduler 200 ms each and the pod its forecast."""

_UNSHAPED: Final = 0.01
"""Share of questions; under failurePolicy Fail each is a pod that was refused."""

_WEEK: Final = 7 * 86400
"""A managed certificate is renewed ten days before its end: three days of trying in vain have passed."""

_DAY: Final = 86400

_PROCESS: Final = "by (cluster, job)"
_REPLICA: Final = "(cluster, job, instance)"

_PLACES: Final = f"on {_REPLICA} (forecast_leader == 1 or forecast_shards_owned > 0)"
"""The replica that leads; where replicas share the nodes, all that own some."""

_HELD_SECONDS: Final = 65
"""The largest advise.gate_timeout, and 5 s."""


def loop_alerts() -> list[Alert]:
    """Who is not deployed has no series, and no alert."""
    return [*_loops(), *_advisor(), *_extender(), *_webhook()]


def _loops() -> list[Alert]:
    attempts = f"sum {_PROCESS} (rate(forecast_schedule_attempts_total[15m]))"
    failed = f'sum {_PROCESS} (rate(forecast_schedule_attempts_total{{result="error"}}[15m]))'
    tried = f"sum by {_REPLICA} (increase(forecast_schedule_attempts_total[10m])) > 0"
    return [
        Alert(
            "ForecastQueueStuck",
            Severity.CRITICAL,
            f'sum by {_REPLICA} (forecast_pending_pods{{queue="active"}}) > 0'
            f" and {_PLACES} unless on {_REPLICA} {tried}",
            "5m",
            "{{ $labels.instance }}: {{ $value }} pods are ready to be scheduled and none was tried for ten minutes",
            "Pods are in the active part of the queue, this replica places pods, and no attempt had any result. "
            "/v1/queue?part=active has the pods; the log says what the loop waits for.",
        ),
        Alert(
            "ForecastSchedulingLoopStalled",
            Severity.CRITICAL,
            f"forecast_scheduling_loop_age_seconds > {_STALLED_SECONDS} and {_PLACES}",
            "1m",
            "{{ $labels.instance }}: the scheduling loop has not gone round for {{ $value | humanizeDuration }}",
            "The loop of a replica that places pods hangs. /healthz fails and the kubelet starts the process again; "
            "another replica takes over.",
        ),
        Alert(
            "ForecastNoLeader",
            Severity.CRITICAL,
            f"max {_PROCESS} (forecast_leader) == 0",
            "2m",
            "{{ $labels.job }}: no replica schedules",
            "No replica holds the Lease, so no pod that names our scheduler gets a node. /readyz of each replica says "
            "why it cannot take over.",
        ),
        Alert(
            "ForecastShardsFree",
            Severity.CRITICAL,
            f"min {_PROCESS} (forecast_shards_free) > 0",
            "2m",
            "{{ $labels.job }}: {{ $value }} shards of nodes have no owner",
            "No replica places on their nodes. A shard whose owner died is free for the duration of a lease, one that "
            "is handed over for seconds. forecast_shard_trouble says which replicas must own nothing.",
        ),
        Alert(
            "ForecastShardTrouble",
            Severity.WARNING,
            "forecast_shard_trouble > 0",
            "5m",
            "{{ $labels.instance }}: this replica owns no nodes",
            "Its loop hangs, its watch lags, it cannot read the Leases, or its number of shards differs from that of "
            "the others: its log says which. The other replicas place on its nodes.",
        ),
        Alert(
            "ForecastGangStarving",
            Severity.WARNING,
            f"max {_PROCESS} (forecast_gang_longest_wait_seconds) > {_STARVING_SECONDS}",
            "5m",
            "{{ $labels.job }}: a complete gang has been tried in vain for {{ $value | humanizeDuration }}",
            "All its members exist and there was never room for them at once. kubectl get podgroups -A shows those in "
            "phase Scheduling.",
        ),
        Alert(
            "ForecastSchedulingErrors",
            Severity.WARNING,
            f"{failed} / {attempts} > {_ERRORS}",
            "15m",
            "{{ $labels.job }}: {{ $value | humanizePercentage }} of scheduling attempts end with an error",
            "Not for want of room, but because something failed: the API server, rights, or a mistake of ours. The log "
            "names it.",
        ),
        Alert(
            "ForecastWatchBehind",
            Severity.WARNING,
            f"forecast_assumed_pods > 0 and on {_REPLICA} forecast_bindings_in_flight == 0",
            "15m",
            "{{ $labels.instance }}: {{ $value }} pods were bound long ago and the watch does not show it",
            "Nothing is being bound, and still pods are only assumed to have their node: the watch of pods is behind.",
        ),
        Alert(
            "ForecastOvercommitUnrepaired",
            Severity.WARNING,
            "max by (cluster, job, cause) (forecast_overcommitted_nodes) > 0",
            "15m",
            "{{ $value }} nodes have more requested than allocatable (cause: {{ $labels.cause }})",
            "Repair takes seconds where it can evict a pod of ours. Here it cannot, or it is switched off.",
        ),
        Alert(
            "ForecastPolicyRefused",
            Severity.WARNING,
            f"min {_PROCESS} (forecast_policy_document_valid) == 0",
            "5m",
            "{{ $labels.job }}: the policy document is not in effect",
            "It has a mistake, is gone, or cannot be read. The last good policies stay in effect; after a restart only "
            "those of the settings.",
        ),
    ]


def _advisor() -> list[Alert]:
    return [
        Alert(
            "ForecastPodsHeld",
            Severity.CRITICAL,
            f"max {_PROCESS} (forecast_gated_longest_seconds) > {_HELD_SECONDS}",
            "1m",
            "{{ $labels.job }}: our gate has held a pod for {{ $value | humanizeDuration }}",
            "Neither the advisors nor the webhook can release it. Their logs say why its gate cannot be removed; "
            "`forecast-scheduler advise --release` removes it by hand.",
        ),
        Alert(
            "ForecastUnadvised",
            Severity.WARNING,
            f"sum {_PROCESS} (increase(forecast_webhook_unadvised_pods_total[5m])) > 0",
            "2m",
            "{{ $labels.job }}: {{ $value | humanize }} pods came without advice in five minutes",
            "No advisor renewed its Lease, or the webhook may not remove gates: new pods that ask for advice are not "
            "held for it, and kube-scheduler places them alone.",
        ),
        Alert(
            "ForecastNominationsIgnored",
            Severity.WARNING,
            f"min {_PROCESS} (forecast_nominations_followed and on {_REPLICA} forecast_leader == 1) == 0",
            "5m",
            "{{ $labels.job }}: nominations are not followed; held pods prefer their nodes",
            "Three canaries in a row went elsewhere, or the API server did not store nominations. Held pods get "
            "preferred node affinity instead, which other scores may outweigh. Canaries go on: one that is followed "
            "brings nominations back.",
        ),
    ]


def _extender() -> list[Alert]:
    requests = f"sum {_PROCESS} (rate(forecast_extender_requests_total[10m]))"
    neutral = f'sum {_PROCESS} (rate(forecast_extender_requests_total{{outcome=~"late|failed|not_ready"}}[10m]))'
    return [
        Alert(
            "ForecastExtenderNeutral",
            Severity.WARNING,
            f"{neutral} / {requests} > {_NEUTRAL}",
            "10m",
            "{{ $labels.job }}: {{ $value | humanizePercentage }} of answers to kube-scheduler were neutral",
            "The extender was late, not ready, or failed. kube-scheduler goes on by itself, these pods are placed "
            "without the forecast.",
        ),
    ]


def _webhook() -> list[Alert]:
    remaining = f"min {_PROCESS} (forecast_webhook_certificate_expiry_timestamp_seconds) - time()"
    reviews = f"sum {_PROCESS} (rate(forecast_webhook_reviews_total[10m]))"
    unanswered = f'sum {_PROCESS} (rate(forecast_webhook_reviews_total{{outcome=~"failed|not_ready"}}[10m]))'
    return [
        *(
            Alert(
                "ForecastWebhookCertificateExpiring",
                severity,
                f"{remaining} < {limit}",
                "15m",
                "{{ $labels.job }}: the certificate ends in {{ $value | humanizeDuration }}",
                "It should have been renewed. Once it has ended the API server cannot call the webhook: pods are "
                "created unshaped, or refused under failurePolicy Fail.",
            )
            for severity, limit in ((Severity.WARNING, _WEEK), (Severity.CRITICAL, _DAY))
        ),
        Alert(
            "ForecastWebhookNotReady",
            Severity.CRITICAL,
            f"max {_PROCESS} (forecast_webhook_ready) == 0",
            "10m",
            "{{ $labels.job }}: no replica has read templates and bindings",
            "None of them is ready, so the API server reaches none: pods are created unshaped, or refused under "
            "failurePolicy Fail.",
        ),
        Alert(
            "ForecastWebhookFailing",
            Severity.WARNING,
            f"{unanswered} / {reviews} > {_UNSHAPED}",
            "10m",
            "{{ $labels.job }}: {{ $value | humanizePercentage }} of the API server's questions got no answer",
            "These pods were left to failurePolicy: created unshaped, or refused.",
        ),
        Alert(
            "ForecastTemplateBroken",
            Severity.WARNING,
            f"max {_PROCESS} (forecast_webhook_bindings_broken) > 0",
            "10m",
            "{{ $labels.job }}: {{ $value }} bindings of templates apply to nobody",
            "A binding or its template has a mistake; the condition Ready of the binding says which.",
        ),
    ]
