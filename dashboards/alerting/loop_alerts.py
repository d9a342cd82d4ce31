"""What is wrong with who schedules: our own loops, the extender beside kube-scheduler, policies, and the webhook."""

from __future__ import annotations

from typing import Final

from dashboards.alerting.alert import Alert, Severity
from dashboards.alerting.causes import JOB, REPLICA, cannot_read, deaf_replica, named, unless

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

_PROCESS: Final = f"by ({JOB})"
_REPLICA: Final = f"({REPLICA})"
_PLACES: Final = f"on {_REPLICA} (forecast_leader == 1 or forecast_shards_owned > 0)"
"""The replica that leads; where replicas share the nodes, all that own some."""


def loop_alerts() -> list[Alert]:
    """Who is not deployed has no series, and no alert."""
    return [*_loops(), *_extender(), *_webhook()]


def _loops() -> list[Alert]:
    attempts = f"sum {_PROCESS} (rate(forecast_schedule_attempts_total[15m]))"
    failed = f'sum {_PROCESS} (rate(forecast_schedule_attempts_total{{result="error"}}[15m]))'
    stalled = f"forecast_scheduling_loop_age_seconds > {_STALLED_SECONDS} and {_PLACES}"
    invalid = "forecast_policy_document_valid == 0"
    tried = f"sum by {_REPLICA} (increase(forecast_schedule_attempts_total[10m])) > 0"
    return [
        Alert(
            "ForecastQueueStuck",
            Severity.CRITICAL,
            f'sum {_PROCESS} (sum by {_REPLICA} (forecast_pending_pods{{queue="active"}}) > 0'
            f" and {_PLACES} unless on {_REPLICA} {tried}{deaf_replica()}){unless(JOB, stalled)}",
            "5m",
            "{{ $labels.job }}: {{ $value }} pods are ready to be scheduled and none was tried for ten minutes",
            "Pods are ready, this replica places pods, and no attempt has ended for ten minutes. No pod that names "
            "our scheduler gets a node.",
            action="If `bindings_in_flight` stays high, the API server is slow. Otherwise delete the leader's pod: "
            "another replica takes over, and no pod is lost or bound twice. Report it with the log.",
            commands=(
                'curl -s "$SCHEDULER/v1/queue?part=active&limit=5"',
                'curl -s "$SCHEDULER/v1/status"             # scheduling: loop_age_seconds, bindings_in_flight',
            ),
        ),
        Alert(
            "ForecastSchedulingLoopStalled",
            Severity.CRITICAL,
            f"max {_PROCESS} ({stalled})",
            "1m",
            "{{ $labels.job }}: the scheduling loop has not gone round for {{ $value | humanizeDuration }}",
            "The loop of a replica that places pods hangs. `/healthz` fails, the kubelet restarts the process, and "
            "another replica takes over.",
            action="Nothing if it recovered. If its CPU is throttled, give it more. Otherwise report it with its log.",
        ),
        Alert(
            "ForecastNoLeader",
            Severity.CRITICAL,
            f"max {_PROCESS} (forecast_leader) == 0{cannot_read()}",
            # Longer than it takes to find out that the API server is silent: the Leases end long before.
            "5m",
            "{{ $labels.job }}: no replica schedules",
            "No replica holds the Lease: pods that name our scheduler stay Pending.",
            action="`/readyz` of each replica says why it cannot take over: usually a missing right on Leases, or "
            "no replica runs. A `--dry-run` never leads: do not scrape one under this job's name.",
            commands=("kubectl -n forecast-scheduler get lease forecast-scheduler -o yaml",),
        ),
        Alert(
            "ForecastShardsFree",
            Severity.CRITICAL,
            f"min {_PROCESS} (forecast_shards_free) > 0{cannot_read()}",
            "5m",
            "{{ $labels.job }}: {{ $value }} shards of nodes have no owner",
            "No replica places pods on the nodes of these shards. After an owner's death that is normal for the "
            "duration of a Lease.",
            action="Start a replica, or give it its rights on Leases (`deploy/components/shards/rbac.yaml`). "
            "`forecast_shard_trouble` says which replicas must own nothing.",
            commands=(
                "kubectl -n forecast-scheduler get leases -l forecast-scheduler.io/shards-of=forecast-scheduler",
                "kubectl -n forecast-scheduler get pods -l app.kubernetes.io/name=forecast-scheduler-schedule",
            ),
            page="../use/shards.md",
        ),
        Alert(
            "ForecastShardTrouble",
            Severity.WARNING,
            f"count {_PROCESS} (forecast_shard_trouble > 0{deaf_replica()}){unless(JOB, stalled)}",
            "5m",
            "{{ $labels.job }}: {{ $value }} replica{{ if ne $value 1.0 }}s own{{ else }} owns{{ end }} no nodes",
            "A replica must own no nodes: its loop hangs, its watch lags, it cannot read the Leases, or its "
            "`schedule.shards.count` differs. The others place on its nodes.",
            action="Its log says which. Give it CPU; after a change of `count` let the rollout end; otherwise "
            "restart it.",
        ),
        Alert(
            "ForecastGangStarving",
            Severity.WARNING,
            f"max {_PROCESS} (forecast_gang_longest_wait_seconds) > {_STARVING_SECONDS}",
            "5m",
            "{{ $labels.job }}: a complete gang has been tried in vain for {{ $value | humanizeDuration }}",
            "All members of a gang exist, and for an hour there was never room for all of them at once.",
            action="The condition's message says how many members fit and what the others lack. Make room, raise "
            "its priority, or delete it.",
            commands=("kubectl get podgroups -A -o wide",),
            page="../use/gangs.md",
        ),
        Alert(
            "ForecastSchedulingErrors",
            Severity.WARNING,
            f"{failed} / {attempts} > {_ERRORS}{cannot_read()}",
            "15m",
            "{{ $labels.job }}: {{ $value | humanizePercentage }} of scheduling attempts end with an error",
            "More than one attempt in twenty fails, and not for want of room. The pods are tried again.",
            action="The log names the error: 403 a missing right, 409 another scheduler on the same pods, 5xx or "
            "time-outs the API server.",
        ),
        Alert(
            "ForecastWatchBehind",
            Severity.WARNING,
            f"max {_PROCESS} (forecast_assumed_pods > 0 and on {_REPLICA} forecast_bindings_in_flight == 0"
            f"{deaf_replica()})",
            "15m",
            "{{ $labels.job }}: {{ $value }} pods were bound long ago and the watch does not show it",
            "Pods were bound a quarter of an hour ago and the watch does not show it. Their nodes count as full "
            "meanwhile, so nothing is overcommitted.",
            action="Look at the API server's load and at `sources` in `/v1/status`. If the API server is well, "
            "restart the process.",
        ),
        Alert(
            "ForecastOvercommitUnrepaired",
            Severity.WARNING,
            "max by (cluster, job, cause) (forecast_overcommitted_nodes) > 0",
            "15m",
            "{{ $value }} nodes have more requested than allocatable (cause: {{ $labels.cause }})",
            "Repair takes seconds where it can evict a pod of ours. Here it cannot, or is off. Kubelets refuse "
            "pods that do not fit; running ones lose nothing.",
            action="Evict a pod by hand, widen its disruption budget, or drain the node. Cause `own`: find out who "
            "else binds pods there.",
            page="../use/scheduling.md#sharing-nodes-on-purpose",
        ),
        Alert(
            "ForecastPolicyRefused",
            Severity.WARNING,
            f"min by (cluster) ({invalid})",
            "5m",
            f"The policy document is not in effect in {named(invalid)}",
            "The document has a mistake, is gone, or cannot be read. The last good policies stay in effect; after "
            "a restart only those of the settings.",
            action="Mend the document: the Event `PolicyRefused` names the place, and so does this command.",
            commands=("forecast-scheduler policy check policies.yaml",),
            page="../use/policies.md",
        ),
    ]


def _extender() -> list[Alert]:
    requests = f"sum {_PROCESS} (rate(forecast_extender_requests_total[10m]))"
    neutral = f'sum {_PROCESS} (rate(forecast_extender_requests_total{{outcome=~"late|failed|not_ready"}}[10m]))'
    return [
        Alert(
            "ForecastExtenderNeutral",
            Severity.WARNING,
            f"{neutral} / {requests} > {_NEUTRAL}{cannot_read()}",
            "10m",
            "{{ $labels.job }}: {{ $value | humanizePercentage }} of answers to kube-scheduler were neutral",
            "The extender was late, not ready, or failed. kube-scheduler goes on by itself and places these pods "
            "without the forecast.",
            action="Outcomes of `forecast_extender_requests_total`: `late`, give it CPU or raise "
            "`extender.deadline`; `failed`, read the log; `not_ready`, see ForecastNotReady.",
        ),
    ]


def _webhook() -> list[Alert]:
    unready_webhook = f"max {_PROCESS} (forecast_webhook_ready) == 0"
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
                "It should have been renewed. Once it has ended, pods are created unshaped, or refused under "
                "failurePolicy Fail.",
                action="Read the webhook's log. With cert-manager look at the Certificate; renew files of your own.",
                page="webhook.md#trouble",
            )
            for severity, limit in ((Severity.WARNING, _WEEK), (Severity.CRITICAL, _DAY))
        ),
        Alert(
            "ForecastWebhookNotReady",
            Severity.CRITICAL,
            unready_webhook,
            "10m",
            "{{ $labels.job }}: no replica has read templates and bindings",
            "No replica is ready, so the API server reaches none: pods are created unshaped, or refused under "
            "failurePolicy Fail.",
            action="Its log names a missing right (403), or an API server that it cannot reach. While pods are "
            "refused, delete the MutatingWebhookConfiguration.",
            page="../../EMERGENCY.md",
        ),
        Alert(
            "ForecastWebhookFailing",
            Severity.WARNING,
            f"{unanswered} / {reviews} > {_UNSHAPED}{unless(JOB, unready_webhook)}",
            "10m",
            "{{ $labels.job }}: {{ $value | humanizePercentage }} of the API server's questions got no answer",
            "failurePolicy decided about these pods: created unshaped, or refused.",
            action="Outcome `not_ready`: rights or definitions are missing. Outcome `failed`: a defect of ours; "
            "report it with the log.",
        ),
        Alert(
            "ForecastTemplateBroken",
            Severity.WARNING,
            f"max {_PROCESS} (forecast_webhook_bindings_broken) > 0",
            "10m",
            "{{ $labels.job }}: {{ $value }} bindings of templates apply to no pod",
            "A binding or its template has a mistake; its pods are created without it.",
            action="The condition `Ready` of the binding says what to mend.",
            commands=("kubectl get schedulerconfigbindings",),
            page="../use/templates.md",
        ),
    ]
