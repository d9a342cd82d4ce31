"""What each alert is for: series in which it fires, and such as are just not bad enough."""

from __future__ import annotations

from tests.dashboards.advice_scenes import ADVICE_SCENES
from tests.dashboards.promtool_tests import Series, series
from tests.dashboards.scene import CRITICAL, DAY, HOUR, INFO, WARNING, Scene, steady

SCORER = {"job": "forecast-scheduler-scorer"}
LOOP = {"job": "forecast-scheduler-schedule", "instance": "10.0.0.7:8889"}
LOOP_JOB = {"job": LOOP["job"]}
REBALANCER = {"job": "forecast-scheduler-rebalancer"}
AUTOSCALER = {"job": "forecast-scheduler-autoscaler"}
EXTENDER = {"job": "forecast-scheduler-extender"}
WEBHOOK = {"job": "forecast-scheduler-webhook"}


def _for_days(name: str, value: float, /, **labels: str) -> Series:
    """The same for 50 hours."""
    return series(name, f"{value!r}+0x3000", **labels)


def _growing(name: str, a_minute: float, /, **labels: str) -> Series:
    """A counter that is there from the start."""
    return series(name, f"0+{a_minute!r}x150", **labels)


def _of_scorer(name: str, *values: float, **labels: str) -> tuple[Series, ...]:
    """Of one replica after the other."""
    return tuple(
        steady(name, value, instance=f"10.0.0.{number}:8888", **SCORER, **labels)
        for number, value in enumerate(values, start=1)
    )


def _started(*levels: float) -> tuple[Series, ...]:
    """Replicas that started at time 0, of which the first alone has measured usage."""
    return (
        *_of_scorer("process_start_time_seconds", *(0.0 for _ in levels)),
        *_of_scorer("forecast_degradation_level", *levels),
        *_of_scorer("forecast_usage_age_seconds", 30),
    )


def _of_loops(*both: Series) -> tuple[Series, ...]:
    """The same of the replica that leads and of one that does not, but follows the cluster and counts."""
    return tuple(one.with_labels({"instance": at}) for one in both for at in ("10.0.0.7:8889", "10.0.0.8:8889"))


def _hot(
    expected: float,
    bound: float,
    *,
    peak_at: int = 4 * HOUR,
    assumed: bool = False,
    placing: tuple[Series, ...] = (steady("forecast_leader", 1, **LOOP),),
    nodes: tuple[str, ...] = ("worker-1",),
    resource: str = "cpu",
) -> tuple[Series, ...]:
    """Nodes of 32 cores, each a hundredth fuller than the one before. placing: of a component that places pods."""
    given = list(placing)
    for number, name in enumerate(nodes):
        node = {"node": name, "resource": resource}
        for quantile, share in (("0.5", expected), ("0.95", bound)):
            today = {"quantile": quantile, "day": "today", "as_of": "now"}
            for job in (SCORER["job"], EXTENDER["job"]):  # both know of every node
                peak = 32 * (share + number / 100)
                given.append(steady("forecast_node_predicted_peak", peak, job=job, **today, **node))
            given += (
                steady("forecast_node_predicted_peak", 99, **SCORER, **(today | other), **node)
                for other in ({"as_of": "midnight"}, {"day": "tomorrow"})
            )
        given += (
            steady("forecast_node_predicted_peak_timestamp_seconds", peak_at, day="today", **node, **SCORER),
            steady("forecast_node_capacity", 32, **node, **SCORER),
            steady("forecast_node_capacity", 32, **node, **EXTENDER),
            *([steady("forecast_node_capacity_assumed", 1, **node, **SCORER)] if assumed else []),
        )
    return tuple(given)


def _succeeded(hours_ago: float) -> tuple[Series, ...]:
    """Hours before minute 40; of the run that failed since there is no time, on the same node or on another."""
    at = 40 * 60 - hours_ago * HOUR
    return (
        series("forecast_train_last_success_timestamp_seconds", f"{at!r}+0x20 _x100", instance="worker-1:9100"),
        series("forecast_train_last_success_timestamp_seconds", f"{at - DAY!r}+0x150", instance="worker-2:9100"),
    )


_EXTENDER_PLACES = steady("forecast_decisions_total", 5, mode="active", outcome="as_advised", **EXTENDER)
_SHADOW = steady("forecast_decisions_total", 5, mode="shadow", outcome="elsewhere", **EXTENDER)
_AROUND = "around 1970-01-01 04:00:00 +0000 UTC"
_HOT = "will probably be over 80% of capacity today, the fullest:"

_FORECAST = (
    Scene(
        "ForecastHotSpotTonight",
        "more than eight tenths of a node are going to be used",
        _hot(0.81, 0.95),
        {WARNING: f"1 node {_HOT} worker-1 (cpu 81% {_AROUND})"},
        labels={},
        elsewhere=tuple(one.with_labels({"cluster": "us-1"}) for one in _hot(0.5, 0.6, peak_at=10 * HOUR)),
    ),
    Scene(
        "ForecastHotSpotTonight",
        "sixty-one nodes are one notification, which names the fullest ten",
        _hot(0.81, 0.0, nodes=tuple(f"n{number:02d}" for number in range(61))),
        {
            WARNING: f"61 nodes {_HOT} "
            + ", ".join(f"n{60 - number} (cpu {141 - number}% {_AROUND})" for number in range(10))
        },
        labels={},
    ),
    Scene(
        "ForecastHotSpotTonight",
        "a node that is hot in two resources is one node, named by the fuller one",
        (*_hot(0.81, 0.0), *_hot(0.85, 0.0, resource="memory", placing=())),
        {WARNING: f"1 node {_HOT} worker-1 (memory 85% {_AROUND})"},
        labels={},
    ),
    Scene(
        "ForecastHotSpotTonight",
        "nothing of ours places pods yet, an extender only as a shadow",
        _hot(0.81, 1.25, placing=(_SHADOW,)),
        {INFO: f"1 node {_HOT} worker-1 (cpu 81% {_AROUND})"},
        labels={},
    ),
    Scene("ForecastHotSpotTonight", "as much of a capacity that is assumed", _hot(1.5, 2.0, assumed=True)),
    Scene(
        "ForecastHotSpotTonight",
        "more than there is",
        _hot(0.9, 1.25, placing=(_EXTENDER_PLACES,)),
        {CRITICAL: f"1 node may be over 100% of capacity today, the fullest: worker-1 (cpu 125% {_AROUND})"},
        labels={},
    ),
    Scene("ForecastHotSpotTonight", "full, but not too full", _hot(0.79, 0.99)),
    Scene("ForecastHotSpotTonight", "the peak is over", _hot(1.25, 1.5, peak_at=-HOUR)),
    Scene(
        "ForecastModelStale",
        "a night was missed",
        (
            *_of_scorer("forecast_model_age_seconds", 37 * HOUR, HOUR),
            steady("forecast_model_age_seconds", 36.5 * HOUR, **EXTENDER),
            *_succeeded(12),
        ),
        {WARNING: "The model is 1d 13h 0m 0s old in forecast-scheduler-extender, forecast-scheduler-scorer"},
        labels={},
    ),
    Scene(
        "ForecastModelStale",
        "two weeks were",
        _of_scorer("forecast_model_age_seconds", 14 * DAY + 60),
        {CRITICAL: "The model is 14d 0h 1m 0s old in forecast-scheduler-scorer"},
        labels={},
    ),
    Scene(
        "ForecastModelStale", "a day and a half is the age at night", _of_scorer("forecast_model_age_seconds", 129_600)
    ),
    Scene(
        "ForecastModelRefused",
        "one replica refuses it",
        _of_scorer("forecast_model_refused", 0, 1),
        {WARNING: "A newer model was refused by forecast-scheduler-scorer"},
        labels={},
    ),
    Scene("ForecastModelRefused", "none does", _of_scorer("forecast_model_refused", 0, 0)),
    Scene(
        "ForecastCoverageBroken",
        "bounds hold less often than the gate asks for",
        (
            _for_days("forecast:node_coverage:3d", 0.84, resource="cpu"),
            _for_days("forecast:nodes_compared", 1, resource="cpu"),
        ),
        {WARNING: "cpu: usage was below its 0.95 bound in 84% of node half hours of three days only"},
        at=49 * 60 + 10,
        labels={"resource": "cpu"},
    ),
    Scene(
        "ForecastCoverageBroken",
        "they hold less often than promised, but not much",
        (
            _for_days("forecast:node_coverage:3d", 0.86, resource="cpu"),
            _for_days("forecast:nodes_compared", 48, resource="cpu"),
        ),
        at=49 * 60 + 10,
    ),
    Scene(
        "ForecastCoverageBroken",
        "one odd day is all there is",
        (
            _for_days("forecast:node_coverage:3d", 0.2, resource="cpu"),
            _for_days("forecast:nodes_compared", 48, resource="cpu"),
        ),
        at=47 * 60,
    ),
    Scene(
        "ForecastDegraded",
        "no live correction",
        _of_scorer("forecast_degradation_level", 0, 1),
        {WARNING: "Degradation level 1 in forecast-scheduler-scorer"},
        labels={},
        at=40,
    ),
    Scene(
        "ForecastDegraded",
        "placed by requests",
        _of_scorer("forecast_degradation_level", 3, 0),
        {CRITICAL: "Degradation level 3 in forecast-scheduler-scorer"},
        labels={},
        at=40,
    ),
    Scene(
        "ForecastDegraded",
        "placed by requests, and usage is missing as well, which is another cause",
        (*_of_scorer("forecast_degradation_level", 3), *_of_scorer("forecast_usage_age_seconds", 660)),
        {CRITICAL: "Degradation level 3 in forecast-scheduler-scorer"},
        labels={},
        at=40,
    ),
    Scene("ForecastDegraded", "fresh", _of_scorer("forecast_degradation_level", 0, 0), at=40),
    Scene(
        "ForecastNotReady",
        "a list does not end",
        _of_scorer("forecast_ready", 0, 1),
        {CRITICAL: "1 replica of forecast-scheduler-scorer did not read the cluster"},
        labels={},
    ),
    Scene(
        "ForecastNotReady",
        "a list does not end, and another part has lost the API server",
        (
            *_of_scorer("forecast_ready", 0),
            *_of_scorer("forecast_cluster_state_age_seconds", 5),
            steady("forecast_cluster_state_age_seconds", 300, **EXTENDER),
        ),
        {CRITICAL: "1 replica of forecast-scheduler-scorer did not read the cluster"},
        labels={},
    ),
    Scene(
        "ForecastNotReady",
        "no part hears of the API server, which has an alert",
        (*_of_scorer("forecast_ready", 0), steady("forecast_cluster_state_age_seconds", 300, **EXTENDER)),
    ),
    Scene("ForecastNotReady", "all was read", _of_scorer("forecast_ready", 1, 1)),
    Scene(
        "ForecastScorerDrift",
        "two rows differ",
        _of_scorer("forecast_self_check_drift", 0, 2),
        {WARNING: "2 differences between the cluster and the tables of forecast-scheduler-scorer"},
        labels={},
    ),
    Scene("ForecastScorerDrift", "none does", _of_scorer("forecast_self_check_drift", 0, 0)),
    Scene(
        "ForecastUsageStale",
        "eleven minutes without an answer",
        _of_scorer("forecast_usage_age_seconds", 660),
        {WARNING: "No usage was measured for 11m 0s by forecast-scheduler-scorer"},
        labels={},
    ),
    Scene("ForecastUsageStale", "ten", _of_scorer("forecast_usage_age_seconds", 600)),
    Scene(
        "ForecastUsageStale",
        "one of two replicas has had none since it started",
        _started(0, 1),
        {WARNING: "No usage was measured for 20m 0s by forecast-scheduler-scorer"},
        labels={},
    ),
    Scene("ForecastUsageStale", "a replica that is not degraded needs none", _started(0, 0)),
    Scene(
        "ForecastClusterStateStale",
        "more than four minutes of silence",
        _of_scorer("forecast_cluster_state_age_seconds", 241),
        {CRITICAL: "The API server was last heard of 4m 1s ago by forecast-scheduler-scorer"},
        labels={},
    ),
    Scene("ForecastClusterStateStale", "four", _of_scorer("forecast_cluster_state_age_seconds", 240)),
    Scene(
        "ForecastServicesUnknown",
        "most pods are nobody's",
        (
            *_of_scorer("forecast_unknown_service_pods", 60),
            *_of_scorer("forecast_cluster_objects", 100, kind="pods"),
            *_of_scorer("forecast_cluster_objects", 1, kind="nodes"),
            *_of_scorer("forecast_degradation_level", 0),
        ),
        {WARNING: "The model does not know the service of 60% of pods in forecast-scheduler-scorer"},
        at=80,
        labels={},
    ),
    Scene(
        "ForecastServicesUnknown",
        "half of them are",
        (
            *_of_scorer("forecast_unknown_service_pods", 50),
            *_of_scorer("forecast_cluster_objects", 100, kind="pods"),
            *_of_scorer("forecast_degradation_level", 0),
        ),
        at=80,
    ),
    Scene(
        "ForecastServicesUnknown",
        "without a model nobody is known, and that is told otherwise",
        (
            *_of_scorer("forecast_unknown_service_pods", 100),
            *_of_scorer("forecast_cluster_objects", 100, kind="pods"),
            *_of_scorer("forecast_degradation_level", 3),
        ),
        at=80,
    ),
)


def _loop(pending: float, attempts_a_minute: float, leader: float = 1.0) -> tuple[Series, ...]:
    return (
        steady("forecast_pending_pods", pending, queue="active", **LOOP),
        steady("forecast_pending_pods", 50, queue="unschedulable", **LOOP),
        steady("forecast_leader", leader, **LOOP),
        _growing("forecast_schedule_attempts_total", attempts_a_minute, result="scheduled", profile="p", **LOOP),
    )


def _attempts(errors: float, scheduled: float) -> tuple[Series, ...]:
    return (
        _growing("forecast_schedule_attempts_total", errors, result="error", profile="p", **LOOP),
        _growing("forecast_schedule_attempts_total", scheduled, result="scheduled", profile="p", **LOOP),
    )


_LOOPS = (
    Scene(
        "ForecastQueueStuck",
        "pods wait for their turn and nobody takes one",
        _loop(3, 0),
        {CRITICAL: "forecast-scheduler-schedule: 3 pods are ready to be scheduled and none was tried for ten minutes"},
    ),
    Scene(
        "ForecastQueueStuck",
        "the leader takes none, and another replica has not read the cluster",
        (*_loop(3, 0), steady("forecast_ready", 1, **LOOP), steady("forecast_ready", 0, **LOOP_JOB, instance="b")),
        {CRITICAL: "forecast-scheduler-schedule: 3 pods are ready to be scheduled and none was tried for ten minutes"},
    ),
    Scene(
        "ForecastQueueStuck",
        "the leader has lost the API server, which has an alert",
        (*_loop(3, 0), steady("forecast_cluster_state_age_seconds", 300, **LOOP)),
    ),
    Scene("ForecastQueueStuck", "one a minute is tried", _loop(3, 1)),
    Scene("ForecastQueueStuck", "who waits for an event is not stuck", _loop(0, 0)),
    Scene("ForecastQueueStuck", "a replica that waits for its turn tries none", _loop(3, 0, leader=0.0)),
    Scene(
        "ForecastSchedulingLoopStalled",
        "the leader hangs",
        (steady("forecast_scheduling_loop_age_seconds", 61, **LOOP), steady("forecast_leader", 1, **LOOP)),
        {CRITICAL: "forecast-scheduler-schedule: the scheduling loop has not gone round for 1m 1s"},
        at=5,
    ),
    Scene(
        "ForecastSchedulingLoopStalled",
        "a minute",
        (steady("forecast_scheduling_loop_age_seconds", 60, **LOOP), steady("forecast_leader", 1, **LOOP)),
        at=5,
    ),
    Scene(
        "ForecastNoLeader",
        "two replicas, no leader",
        (steady("forecast_leader", 0, **LOOP), steady("forecast_leader", 0, **LOOP_JOB, instance="b")),
        {CRITICAL: "forecast-scheduler-schedule: no replica schedules"},
        at=10,
    ),
    Scene(
        "ForecastNoLeader",
        "one of two replicas has not read the cluster, and the other one does not lead",
        (
            *(steady("forecast_leader", 0, **LOOP_JOB, instance=at) for at in "ab"),
            *(steady("forecast_ready", value, **LOOP_JOB, instance=at) for value, at in ((0, "a"), (1, "b"))),
        ),
        {CRITICAL: "forecast-scheduler-schedule: no replica schedules"},
        at=10,
    ),
    Scene(
        "ForecastNoLeader",
        "neither of them has read the cluster, which has an alert",
        tuple(steady(f"forecast_{name}", 0, **LOOP_JOB, instance=at) for name in ("leader", "ready") for at in "ab"),
        at=10,
    ),
    Scene(
        "ForecastNoLeader",
        "one of them leads",
        (steady("forecast_leader", 0, **LOOP), steady("forecast_leader", 1, **LOOP_JOB, instance="b")),
        at=10,
    ),
    Scene(
        "ForecastQueueStuck",
        "a replica that owns nodes does not lead",
        (*_loop(3, 0, leader=0.0), steady("forecast_shards_owned", 5, **LOOP)),
        {CRITICAL: "forecast-scheduler-schedule: 3 pods are ready to be scheduled and none was tried for ten minutes"},
    ),
    Scene(
        "ForecastQueueStuck",
        "a replica without nodes tries none",
        (*_loop(3, 0, leader=0.0), steady("forecast_shards_owned", 0, **LOOP)),
    ),
    Scene(
        "ForecastSchedulingLoopStalled",
        "a replica that owns nodes hangs",
        (
            steady("forecast_scheduling_loop_age_seconds", 61, **LOOP),
            steady("forecast_leader", 0, **LOOP),
            steady("forecast_shards_owned", 5, **LOOP),
        ),
        {CRITICAL: "forecast-scheduler-schedule: the scheduling loop has not gone round for 1m 1s"},
        at=5,
    ),
    Scene(
        "ForecastShardsFree",
        "no replica takes three shards",
        _of_loops(steady("forecast_shards_free", 3, **LOOP)),
        {CRITICAL: "forecast-scheduler-schedule: 3 shards of nodes have no owner"},
        at=10,
    ),
    Scene(
        "ForecastShardsFree",
        "a replica that cannot read the Leases sees none of their owners",
        (steady("forecast_shards_free", 16, **LOOP), steady("forecast_shards_free", 0, **LOOP_JOB, instance="b")),
        at=10,
    ),
    Scene(
        "ForecastShardsFree",
        "a replica died: others take its shards when their Leases have expired",
        _of_loops(series("forecast_shards_free", "0x5 4 0x20", **LOOP)),
        at=8,
    ),
    Scene(
        "ForecastShardTrouble",
        "one of two replicas lags",
        (steady("forecast_shard_trouble", 1, **LOOP), steady("forecast_shard_trouble", 0, **LOOP_JOB, instance="b")),
        {WARNING: "forecast-scheduler-schedule: 1 replica owns no nodes"},
        at=10,
    ),
    Scene("ForecastShardTrouble", "it starts", (series("forecast_shard_trouble", "1 1 1 0x50", **LOOP),), at=6),
    Scene(
        "ForecastNominationsIgnored",
        "the leader's canaries went elsewhere; another replica led before",
        (
            steady("forecast_nominations_followed", 0, **LOOP),
            steady("forecast_leader", 1, **LOOP),
            steady("forecast_nominations_followed", 1, **LOOP_JOB, instance="b"),
            steady("forecast_leader", 0, **LOOP_JOB, instance="b"),
        ),
        {WARNING: "forecast-scheduler-schedule: nominations are not followed; held pods prefer their nodes"},
        at=10,
    ),
    Scene(
        "ForecastNominationsIgnored",
        "in doubt; a replica that led before found that they were not followed",
        (
            steady("forecast_nominations_followed", 0.5, **LOOP),
            steady("forecast_leader", 1, **LOOP),
            steady("forecast_nominations_followed", 0, **LOOP_JOB, instance="b"),
            steady("forecast_leader", 0, **LOOP_JOB, instance="b"),
        ),
        at=10,
    ),
    Scene(
        "ForecastGangStarving",
        "for more than an hour",
        (steady("forecast_gang_longest_wait_seconds", 3660, **LOOP),),
        {WARNING: "forecast-scheduler-schedule: a complete gang has been tried in vain for 1h 1m 0s"},
        at=10,
    ),
    Scene("ForecastGangStarving", "an hour", (steady("forecast_gang_longest_wait_seconds", 3600, **LOOP),), at=10),
    Scene(
        "ForecastSchedulingErrors",
        "one of ten",
        _attempts(1, 9),
        {WARNING: "forecast-scheduler-schedule: 10% of scheduling attempts end with an error"},
        at=40,
    ),
    Scene("ForecastSchedulingErrors", "one of twenty-five", _attempts(1, 24), at=40),
    Scene(
        "ForecastWatchBehind",
        "nothing is being bound, and still",
        (steady("forecast_assumed_pods", 4, **LOOP), steady("forecast_bindings_in_flight", 0, **LOOP)),
        {WARNING: "forecast-scheduler-schedule: 4 pods were bound long ago and the watch does not show it"},
    ),
    Scene(
        "ForecastWatchBehind",
        "they are being bound",
        (steady("forecast_assumed_pods", 4, **LOOP), steady("forecast_bindings_in_flight", 1, **LOOP)),
    ),
    Scene(
        "ForecastOvercommitUnrepaired",
        "two nodes",
        (
            steady("forecast_overcommitted_nodes", 2, cause="shrunk", **LOOP),
            steady("forecast_overcommitted_nodes", 0, cause="own", **LOOP),
        ),
        {WARNING: "2 nodes have more requested than allocatable (cause: shrunk)"},
        labels={**LOOP_JOB, "cause": "shrunk"},
    ),
    Scene(
        "ForecastOvercommitUnrepaired",
        "repaired after ten minutes",
        (series("forecast_overcommitted_nodes", "2+0x9 0+0x60", cause="shared", **LOOP),),
    ),
    Scene(
        "ForecastPolicyRefused",
        "a mistake in it",
        (
            steady("forecast_policy_document_valid", 0, **EXTENDER, instance="a"),
            steady("forecast_policy_document_valid", 1, **EXTENDER, instance="b"),
        ),
        {WARNING: "The policy document is not in effect in forecast-scheduler-extender"},
        at=10,
        labels={},
    ),
    Scene("ForecastPolicyRefused", "in effect", (steady("forecast_policy_document_valid", 1, **EXTENDER),), at=10),
)


def _requests(late: float, answered: float) -> tuple[Series, ...]:
    return (
        _growing("forecast_extender_requests_total", late, verb="prioritize", outcome="late", **EXTENDER),
        _growing("forecast_extender_requests_total", answered, verb="prioritize", outcome="answered", **EXTENDER),
    )


def _reviews(failed: float, shaped: float) -> tuple[Series, ...]:
    return (
        _growing("forecast_webhook_reviews_total", failed, outcome="failed", **WEBHOOK),
        _growing("forecast_webhook_reviews_total", shaped, outcome="shaped", **WEBHOOK),
        _growing("forecast_webhook_reviews_total", 9, outcome="malformed", **WEBHOOK),  # nobody's pod
    )


def _certificate(seconds_left: float) -> tuple[Series, ...]:
    """Left after twenty minutes, of the older of two."""
    end = seconds_left + 20 * 60
    return tuple(
        steady("forecast_webhook_certificate_expiry_timestamp_seconds", at, **WEBHOOK, instance=str(number))
        for number, at in enumerate((end, end + DAY))
    )


_ENDS = "forecast-scheduler-webhook: the certificate ends in"

_BESIDE = (
    Scene(
        "ForecastExtenderNeutral",
        "one answer of ten is late",
        _requests(1, 9),
        {WARNING: "forecast-scheduler-extender: 10% of answers to kube-scheduler were neutral"},
        at=30,
    ),
    Scene("ForecastExtenderNeutral", "one of twenty-five is", _requests(1, 24), at=30),
    Scene("ForecastExtenderNeutral", "nobody asks", _requests(0, 0), at=30),
    Scene(
        "ForecastWebhookCertificateExpiring",
        "less than a week is left",
        _certificate(6 * DAY),
        {WARNING: f"{_ENDS} 6d 0h 0m 0s"},
    ),
    Scene(
        "ForecastWebhookCertificateExpiring",
        "less than a day is",
        _certificate(2 * HOUR),
        {CRITICAL: f"{_ENDS} 2h 0m 0s"},
    ),
    Scene("ForecastWebhookCertificateExpiring", "a week is", _certificate(7 * DAY)),
    Scene(
        "ForecastWebhookNotReady",
        "neither of two",
        tuple(steady("forecast_webhook_ready", 0, **WEBHOOK, instance=one) for one in "ab"),
        {CRITICAL: "forecast-scheduler-webhook: no replica has read templates and bindings"},
        at=15,
    ),
    Scene(
        "ForecastWebhookNotReady",
        "one of them is, the other begins",
        tuple(steady("forecast_webhook_ready", ready, **WEBHOOK, instance=str(ready)) for ready in (0, 1)),
        at=15,
    ),
    Scene(
        "ForecastWebhookFailing",
        "one of ten",
        _reviews(2, 9),
        {WARNING: "forecast-scheduler-webhook: 10% of the API server's questions got no answer"},
        at=30,
    ),
    Scene("ForecastWebhookFailing", "one of a hundred", _reviews(1, 90), at=30),
    Scene(
        "ForecastTemplateBroken",
        "one binding",
        (steady("forecast_webhook_bindings_broken", 1, **WEBHOOK),),
        {WARNING: "forecast-scheduler-webhook: 1 bindings of templates apply to no pod"},
    ),
    Scene("ForecastTemplateBroken", "none", (steady("forecast_webhook_bindings_broken", 0, **WEBHOOK),)),
)

_POOL = {**LOOP_JOB, "pool": "a100"}

_GPUS_AND_JOBS = (
    Scene(
        "ForecastGpuConflict",
        "one card",
        (steady("forecast_gpu_device_conflicts", 1, **LOOP),),
        {CRITICAL: "forecast-scheduler-schedule: 1 cards are promised to more pods than they hold, or are gone"},
        at=10,
    ),
    Scene("ForecastGpuConflict", "none", (steady("forecast_gpu_device_conflicts", 0, **LOOP),), at=10),
    Scene(
        "ForecastTideShortfall",
        "six minutes of the last hour",
        _of_loops(_growing("forecast_tide_shortfall_seconds_total", 6, **LOOP, pool="a100")),
        {CRITICAL: "Pool a100: inference waited 6m 0s of the last hour for GPUs that training held"},
        at=70,
        labels=_POOL,
    ),
    Scene(
        "ForecastTideShortfall",
        "five",
        _of_loops(_growing("forecast_tide_shortfall_seconds_total", 5, **LOOP, pool="a100")),
        at=70,
    ),
    Scene(
        "ForecastTideLacking",
        "four GPUs for half an hour",
        (steady("forecast_tide_lacking_gpus", 4, **LOOP, pool="a100"),),
        {WARNING: "Pool a100: inference will lack 4 GPUs"},
        at=40,
        labels=_POOL,
    ),
    Scene(
        "ForecastTideLacking",
        "for a moment",
        (series("forecast_tide_lacking_gpus", "4+0x20 0+0x60", **LOOP, pool="a100"),),
        at=40,
    ),
    Scene(
        "ForecastGpuNodeStrained",
        "one node",
        (steady("forecast_gpu_unrelieved_nodes", 1, **LOOP),),
        {WARNING: "forecast-scheduler-schedule: 1 GPU nodes are strained by offline pods that cannot be taken off"},
    ),
    Scene("ForecastGpuNodeStrained", "none", (steady("forecast_gpu_unrelieved_nodes", 0, **LOOP),)),
    Scene(
        "ForecastJobDeadlineMissed",
        "one every ten minutes",
        _of_loops(_growing("forecast_job_deadline_missed_total", 0.1, **LOOP)),
        {WARNING: "forecast-scheduler-schedule: 6 job pods missed their deadline within the hour"},
        at=70,
    ),
    Scene(
        "ForecastJobDeadlineMissed",
        "none since an hour ago",
        (series("forecast_job_deadline_missed_total", "0 7+0x150", **LOOP),),
        at=70,
    ),
    Scene(
        "ForecastProviderBackingOff",
        "for half an hour",
        (steady("forecast_job_provider_backoff_seconds", 120, **LOOP, provider="burst"),),
        {WARNING: "Provider burst gets no pods for 2m 0s more"},
        at=40,
        labels={**LOOP_JOB, "provider": "burst"},
    ),
    Scene(
        "ForecastProviderBackingOff",
        "it gets pods",
        (steady("forecast_job_provider_backoff_seconds", 0, **LOOP, provider="burst"),),
        at=40,
    ),
)


def _gaps(slots: float, expected: float) -> tuple[Series, ...]:
    """Of last night's run, which knows a thousand services; that of the night before left its file on another node."""
    return (
        steady("forecast_train_services", 1000, instance="worker-1:9100"),
        *(
            steady(f"forecast_train_{name}", value, resource="cpu", instance=instance)
            for name, *values in (("data_gap_slots", slots, 0), ("data_expected_slots", expected, 2 * expected))
            for instance, value in zip(("worker-1:9100", "worker-2:9100"), values, strict=True)
        ),
    )


def _up(*values: float) -> tuple[Series, ...]:
    return _of_scorer("up", *values)


def _fell(replicas: int) -> tuple[Series, ...]:
    """Replicas that answered once and do no more."""
    return tuple(series("up", "1 0x100", instance=str(number), **SCORER) for number in range(replicas))


def _rebalancers(
    name: str, leading: float, other: float, /, *, leads: float = 1, mode: str = "on"
) -> tuple[Series, ...]:
    """Of the replica that leads, or would, and of one that does not."""
    at = ("10.0.0.7:8891", "10.0.0.8:8891")
    said = {name: (leading, other), "forecast_rebalance_leading": (leads, 0.0)}
    return (
        *(
            steady(metric, value, instance=instance, **REBALANCER)
            for metric, values in said.items()
            for instance, value in zip(at, values, strict=True)
        ),
        *(
            steady("forecast_rebalance_mode", float(one == mode), instance=instance, mode=one, **REBALANCER)
            for one in ("off", "shadow", "on")
            for instance in at
        ),
    )


_REBALANCING = (
    Scene(
        "ForecastRebalanceStoodDown",
        "the leader did",
        _rebalancers("forecast_rebalance_stood_down", 1, 0, mode="shadow"),
        {
            WARNING: "forecast-scheduler-rebalancer: nights in a row were graded as bad, and no pod is moved any more",
        },
        at=10,
    ),
    Scene(
        "ForecastRebalanceStoodDown",
        "a replica that does not lead has not read yet that it is over",
        _rebalancers("forecast_rebalance_stood_down", 0, 1),
        at=10,
    ),
    Scene(
        "ForecastRebalanceStuck",
        "a move is stuck after 20 minutes",
        (series("forecast_rebalance_moves_total", "0x20 1x100", state="stuck", instance="a", **REBALANCER),),
        {
            WARNING: "forecast-scheduler-rebalancer: the replacement of a pod that was to move did not become ready "
            "within the last hour",
        },
        at=40,
    ),
    Scene(
        "ForecastRebalanceStuck",
        "others end well, and one was stuck long ago",
        (
            series("forecast_rebalance_moves_total", "1x120", state="stuck", instance="a", **REBALANCER),
            _growing("forecast_rebalance_moves_total", 1, state="done", instance="a", **REBALANCER),
        ),
        at=90,
    ),
    Scene(
        "ForecastRebalanceHeldUp",
        "for more than a quarter of an hour",
        _rebalancers("forecast_rebalance_held_up", 1, 0),
        {WARNING: "forecast-scheduler-rebalancer: the rebalancer has not been able to go on for 15 minutes"},
    ),
    Scene(
        "ForecastRebalanceHeldUp",
        "moves are refused one after the other",
        (series("forecast_rebalance_held_up", "1 0 0 0 1 1 0 0 0 1 0 0x6 1 0 1 0 0 1", instance="a", **REBALANCER),),
        {WARNING: "forecast-scheduler-rebalancer: the rebalancer has not been able to go on for 15 minutes"},
    ),
    Scene(
        "ForecastRebalanceHeldUp",
        "a request failed once",
        (series("forecast_rebalance_held_up", "0 0 1 0x22", instance="a", **REBALANCER),),
        at=17,
    ),
    Scene("ForecastRebalanceHeldUp", "nothing holds it up", _rebalancers("forecast_rebalance_held_up", 0, 0)),
    Scene(
        "ForecastRebalanceNoLeader",
        "two replicas, no leader",
        _rebalancers("forecast_rebalance_held_up", 0, 0, leads=0),
        {WARNING: "forecast-scheduler-rebalancer: no replica plans or moves"},
        at=15,
    ),
    Scene(
        "ForecastRebalanceNoLeader",
        "one of them leads",
        _rebalancers("forecast_rebalance_held_up", 0, 0, mode="shadow"),
        at=15,
    ),
    Scene(
        "ForecastRebalanceNoLeader",
        "it is off, and need not",
        _rebalancers("forecast_rebalance_held_up", 0, 0, leads=0, mode="off"),
        at=15,
    ),
)


_OPERATING = (
    Scene(
        "ForecastTrainFailed",
        "thirty-one hours ago",
        _succeeded(31),
        {WARNING: "No nightly run is known to have succeeded for 1d 7h 0m 0s"},
        at=40,
        labels={},
    ),
    Scene("ForecastTrainFailed", "thirty", _succeeded(30), at=40),
    Scene(
        "ForecastTrainFailed",
        "there are no figures of a run, and the model of one of two is not of last night",
        _of_scorer("forecast_model_age_seconds", 37 * HOUR, 12 * HOUR),
        {WARNING: "No nightly run is known to have succeeded for 1d 13h 0m 0s"},
        at=40,
        labels={},
    ),
    Scene(
        "ForecastTrainFailed",
        "there are none, and need not be while models come",
        _of_scorer("forecast_model_age_seconds", 36 * HOUR, 12 * HOUR),
        at=40,
    ),
    Scene(
        "ForecastTrainFailed",
        "a run succeeded, and its model did not arrive",
        (*_of_scorer("forecast_model_age_seconds", 37 * HOUR), *_succeeded(12)),
        at=40,
    ),
    Scene(
        "ForecastTrainFiguresMissing",
        "models come every night, and no figures",
        (_for_days("forecast_model_age_seconds", 12 * HOUR, **SCORER, instance="10.0.0.1:8888"),),
        {WARNING: "The model is 12h 0m 0s old, and no figures of a nightly run have arrived for a week"},
        at=1460,
        labels={},
    ),
    Scene(
        "ForecastTrainFiguresMissing",
        "the figures of last night are there",
        (
            _for_days("forecast_model_age_seconds", 12 * HOUR, **SCORER, instance="10.0.0.1:8888"),
            *_succeeded(31),
        ),
        at=1460,
    ),
    Scene(
        "ForecastTrainFiguresMissing",
        "the model is old: ForecastTrainFailed fires",
        (_for_days("forecast_model_age_seconds", 37 * HOUR, **SCORER, instance="10.0.0.1:8888"),),
        at=1460,
    ),
    Scene(
        "ForecastTrainDataGaps",
        "half of a thousand services ran, all day long, and of 49 % of that nothing was measured",
        _gaps(0.49 * 500 * 48, 500 * 48),
        {WARNING: "cpu: 49% of yesterday's service half hours are missing"},
        labels={"resource": "cpu"},
    ),
    Scene("ForecastTrainDataGaps", "a quarter", _gaps(0.25 * 500 * 48, 500 * 48)),
    Scene("ForecastTrainDataGaps", "no service had pods", _gaps(0, 0)),
    Scene(
        "ForecastTargetDown",
        "one of two",
        _up(0, 1),
        {WARNING: "forecast-scheduler-scorer: 1 of its replicas cannot be scraped, another one can"},
        at=10,
    ),
    Scene("ForecastTargetDown", "none", _up(1, 1), at=10),
    Scene(
        "ForecastComponentDown",
        "both of two",
        _fell(2),
        {CRITICAL: "forecast-scheduler-scorer: no replica can be scraped"},
        at=10,
    ),
    Scene("ForecastComponentDown", "one of two", _up(0, 1), at=10),
    Scene("ForecastComponentDown", "it was never started", _up(0, 0), at=10),
    Scene(
        "ForecastComponentDown",
        "no part answers any more",
        (*_fell(2), series("up", "1 0x100", instance="9", **EXTENDER)),
        {CRITICAL: "No process of ours can be scraped"},
        at=10,
        labels={},
    ),
    Scene("ForecastTargetDown", "somebody else's", (steady("up", 0, job="node-exporter", instance="a"),), at=10),
    Scene(
        "ForecastTargetMissing",
        "gone for twenty minutes",
        (series("up", "1+0x5 _x100", **SCORER, instance="a"), steady("up", 1, **WEBHOOK, instance="b")),
        {WARNING: "A target within the last day and none any more: forecast-scheduler-scorer"},
        at=30,
        labels={},
    ),
    Scene(
        "ForecastTargetMissing",
        "a pod was replaced by another",
        (series("up", "1+0x5 _x100", **SCORER, instance="a"), series("up", "_x5 1+0x100", **SCORER, instance="b")),
        at=30,
    ),
)


def _autoscalers(held_up: float, leading: float, *, writes: bool = True, knows: float = 1.0) -> tuple[Series, ...]:
    """Of two replicas, of which the first leads, or would."""
    said = {"held_up": (held_up, 0.0), "leading": (leading, 0.0), "has_forecast": (knows, knows)}
    said |= {"acting": (leading, 0.0)} if writes else {}
    return tuple(
        steady(f"forecast_autoscale_{name}", value, instance=instance, **AUTOSCALER)
        for name, values in said.items()
        for instance, value in zip(("10.0.0.7:8892", "10.0.0.8:8892"), values, strict=True)
    )


_AUTOSCALING = (
    Scene(
        "ForecastAutoscaleHeldUp",
        "the API server refuses",
        _autoscalers(1, 1),
        {WARNING: "forecast-scheduler-autoscaler: the autoscaler has not been able to go on for 15 minutes"},
    ),
    Scene("ForecastAutoscaleHeldUp", "nothing holds it up", _autoscalers(0, 1)),
    Scene(
        "ForecastAutoscaleNoForecast",
        "the model is too old",
        _autoscalers(0, 1, knows=0),
        {WARNING: "forecast-scheduler-autoscaler: the autoscaler has had no forecast for 30 minutes"},
        at=35,
    ),
    Scene("ForecastAutoscaleNoForecast", "there is one", _autoscalers(0, 1), at=35),
    Scene(
        "ForecastAutoscaleNoLeader",
        "two replicas, no leader",
        _autoscalers(0, 0),
        {WARNING: "forecast-scheduler-autoscaler: no replica writes buffers, marks or requests"},
        at=15,
    ),
    Scene("ForecastAutoscaleNoLeader", "one of them leads", _autoscalers(0, 1), at=15),
    Scene("ForecastAutoscaleNoLeader", "nothing may be written", _autoscalers(0, 0, writes=False), at=15),
)


def _tenants(waiting: float, owed: float) -> tuple[Series, ...]:
    """Of two replicas that both follow the cluster. Another tenant waits beyond its min."""
    given = []
    for instance in ("10.0.0.7:8889", "10.0.0.8:8889"):
        for tenant, pods, cores in (("shop", waiting, owed), ("batch", 9.0, 0.0)):
            labels = {"tenant": tenant, "instance": instance, **LOOP_JOB}
            given.append(steady("forecast_tenant_waiting_pods", pods, **labels))
            given += [
                steady("forecast_tenant_owed", amount, resource=name, **labels)
                for name, amount in (("cpu", cores), ("memory", 0.0))
            ]
    return tuple(given)


_TENANTS = (
    Scene(
        "ForecastTenantKeptWaiting",
        "others hold its min, and its pods wait",
        _tenants(3, 12),
        {WARNING: "Tenant shop: 3 pods wait while others use what it is guaranteed"},
        labels={"tenant": "shop", **LOOP_JOB},
    ),
    Scene("ForecastTenantKeptWaiting", "its pods wait beyond its min", _tenants(3, 0)),
    Scene("ForecastTenantKeptWaiting", "others borrow, and none of its pods waits", _tenants(0, 12)),
)

SCENES: tuple[Scene, ...] = (
    *_FORECAST,
    *ADVICE_SCENES,
    *_LOOPS,
    *_BESIDE,
    *_REBALANCING,
    *_AUTOSCALING,
    *_GPUS_AND_JOBS,
    *_TENANTS,
    *_OPERATING,
)
