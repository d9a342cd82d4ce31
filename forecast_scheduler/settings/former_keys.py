"""Keys of earlier versions: what they are called now, or why they are gone.

A key stands as a document has it, `schedule.job.queues`; a list is `[]`, a name that the user chooses is `NAME`. A
group stands for all keys below it. `forecast-scheduler settings migrate` goes by both tables.
"""

from __future__ import annotations

from typing import Final

# Sections prometheus, train, replay, capacity, requests, rebalance and autoscale.
_RENAMED_AROUND_MODELS: Final[dict[str, str]] = {
    "webhook.advice.excluded_namespaces": "excluded.namespaces",
}

# Sections scorer, extender, schedule, node_rules, advise and webhook.
_RENAMED_AROUND_PLACING: Final[dict[str, str]] = {
    "extender.highest_peaks": "node_rules.highest_peaks",
    "extender.rare_devices": "node_rules.cards",
    "schedule.gpu.cards": "node_rules.cards",
    "schedule.gpu.devices": "node_rules.devices",
    "schedule.gpu.groups": "node_rules.machine_groups",
    "schedule.gpu.topology": "node_rules.topology",
    "schedule.highest_peaks": "node_rules.highest_peaks",
    "schedule.job.longest_wait": "schedule.longest_wait",
    "schedule.job.online_weight": "schedule.unqueued_weight",
    "schedule.job.queues": "schedule.queues",
    "schedule.rare_devices": "node_rules.cards",
}

_SERVICES: Final = ("scorer", "extender", "advise", "rebalance", "autoscale", "schedule", "webhook")
_REPLICATED: Final = ("schedule", "advise", "rebalance", "autoscale")
_SERVER: Final = ("host", "port", "probe_port", "tls_cert", "tls_key", "client_ca", "client_names", "drain")
_ACCESS: Final = (
    *("token_files", "kubernetes_auth", "kubernetes_audiences", "anonymous"),
    *("metrics_open", "allowed_hosts", "max_body_bytes", "max_concurrent"),
)
_FIXED_OF_SERVERS: Final = {
    "shutdown": "requests have 15 s to end",
    "header_timeout": "a client has 10 s for its handshake and header",
    "unread_timeout": "a client that reads nothing has 60 s",
    "connections": "500 at once",
    "reload_every": "certificate files are looked at every 5 s",
}

# Groups that services share: serving, leader_election, decisions, tenants and kubernetes.
_RENAMED_TO_SHARED: Final[dict[str, str]] = {
    **{f"{command}.{key}": f"{command}.serving.{key}" for command in _SERVICES for key in (*_SERVER, *_ACCESS)},
    **{
        f"{command}.lease": f"{command}.leader_election" for command in ("schedule", "advise", "rebalance", "autoscale")
    },
    "scorer.kubeconfig": "kubernetes.kubeconfig",
    "webhook.kubeconfig": "kubernetes.kubeconfig",
    "webhook.advice.lease_name": "advise.leader_election.name",
    "webhook.advice.lease_namespace": "advise.leader_election.namespace",
    **{f"autoscale.external_metrics.{key}": f"autoscale.external_metrics.serving.{key}" for key in _SERVER},
}

_COST = "what a move costs is constant; annotations say which pods move rather not, or never"
_WINDOW = "how the valley of the load is found is constant; rebalance.window.peak_hours keeps hours free of moves"
_UNFORESEEN = "what counts as unforeseen and as insensitive is constant; rebalance.unforeseen.per_day limits the moves"
_TRUST = "how nights are graded is constant"
_EXECUTION = "it is constant; rebalance.execution.parallel and ready_deadline say how moves are carried out"
_REQUESTS = "how requests are recommended is constant: benchmarks chose it"
_RESIZES = "when a pod is resized is constant; requests.resize.service_share limits the resizes of a service"

# Sections prometheus, train, replay, capacity, requests, rebalance and autoscale.
_REMOVED_AROUND_MODELS: Final[dict[str, str]] = {
    "autoscale.act_every": "buffers, marks and requests are looked at every 60 s",
    "autoscale.every": "usage and forecast are compared every 15 s",
    "autoscale.buffers.margin": "a buffer covers 0.5 standard deviations of the error",
    "autoscale.guard.fill": "when the guard marks nodes is constant; autoscale.guard.most_share limits the marks",
    "autoscale.guard.horizon": "the guard looks 4 hours ahead",
    "autoscale.guard.margin": "when the guard marks nodes is constant; autoscale.guard.most_share limits the marks",
    "autoscale.guard.slack": "when the guard marks nodes is constant; autoscale.guard.most_share limits the marks",
    "autoscale.replicas.fresh": "a load is served for 120 s after it was computed",
    "capacity.most": "the search ends at 10 times the recorded nodes",
    "prometheus.compress": "answers are never compressed: inside a cluster that costs more than it saves",
    "prometheus.first_patience": "a run's first request is repeated for 15 s, or for a shorter prometheus.patience",
    "rebalance.cooldown": "how long a moved pod rests is constant: 2 nights, twice as many after each further move",
    "rebalance.cost.least_age": "pods younger than 10 minutes never move",
    "rebalance.cost.default_startup": _COST,
    "rebalance.cost.lost_hour": _COST,
    "rebalance.cost.move": _COST,
    "rebalance.cost.priority": _COST,
    "rebalance.cost.qos": _COST,
    "rebalance.cost.rather_not": _COST,
    "rebalance.cost.share": _COST,
    "rebalance.cost.startup": _COST,
    "rebalance.cost.young": _COST,
    "rebalance.cost.young_for": _COST,
    "rebalance.cost.system_namespaces": "excluded.namespaces names more; those of the system always count",
    "rebalance.execution.keep_plans": _EXECUTION,
    "rebalance.execution.max_elsewhere": _EXECUTION,
    "rebalance.execution.pin": _EXECUTION,
    "rebalance.execution.refusal_deadline": _EXECUTION,
    "rebalance.execution.retry": _EXECUTION,
    "rebalance.horizon": "a plan looks 24 hours ahead, until the next one",
    "rebalance.planning": "how hard the planner looks for moves was measured, and is constant",
    "rebalance.trust.bad_nights": _TRUST,
    "rebalance.trust.coverage": _TRUST,
    "rebalance.trust.least_gain": _TRUST,
    "rebalance.trust.least_share": _TRUST,
    "rebalance.trust.newly_hot_share": _TRUST,
    "rebalance.unforeseen.calm_readings": _UNFORESEEN,
    "rebalance.unforeseen.least_replicas": _UNFORESEEN,
    "rebalance.unforeseen.most_cost": _UNFORESEEN,
    "rebalance.unforeseen.per_service": _UNFORESEEN,
    "rebalance.unforeseen.share": "usage below hot_share is never too high",
    "rebalance.unforeseen.readings": _UNFORESEEN,
    "rebalance.window.flat_hours": _WINDOW,
    "rebalance.window.flat_share": _WINDOW,
    "rebalance.window.freeze": _WINDOW,
    "rebalance.window.peak_share": _WINDOW,
    "rebalance.window.shortest": _WINDOW,
    "rebalance.window.valley_share": _WINDOW,
    "replay.trajectory": "a model is fitted each night; releases are given by `replay --trajectory --release`",
    "requests.carried": _REQUESTS,
    "requests.clock_pays": _REQUESTS,
    "requests.errors": _REQUESTS,
    "requests.least_quantile": _REQUESTS,
    "requests.quiet_discount": _REQUESTS,
    "requests.resize.hold": _RESIZES,
    "requests.resize.lead": _RESIZES,
    "requests.resize.least_change": _RESIZES,
    "requests.resize.margin": _RESIZES,
    "requests.resize.parallel": _RESIZES,
    "requests.resize.retry": _RESIZES,
    "train.gate": "the gate's limits are constants; `train --force` publishes a model all the same",
    "train.lease": "a run that was killed keeps others out for 5 minutes",
}

# Sections scorer, extender, schedule, node_rules, advise and webhook.
_REMOVED_AROUND_PLACING: Final[dict[str, str]] = {
    "advise.follow_timeout": "it is 10s always",
    "advise.gate_timeout": "it is 20s always",
    "advise.gather": "it is 20ms always",
    "advise.prefer": "a pod prefers up to 16 nodes, and counts for 5s, always",
    "advise.requests_in_flight": "it is 32 always",
    "advise.score_per_point": "it is 0.05 always",
    "extender.bind_threads": "it is 32 always",
    "extender.bind_timeout": "it is 4s always: httpTimeout of the extender must be longer",
    "extender.charge": "it is 10s always",
    "extender.longest_reply": "it is 500 nodes always",
    "extender.receive_timeout": "it is 5s always",
    "extender.score_per_point": "it is 0.2 always",
    "extender.threads": "it is 2 always",
    "node_rules.cards.band": "it is 0.8 always",
    "node_rules.cards.half_life": "it is 6h always",
    "node_rules.cards.pressure_band": "it is 0.2 always",
    "node_rules.cards.rare_from": "it is 0.8 always",
    "node_rules.topology.settle": "it is 2m always",
    "schedule.assume_timeout": "it is 1m always",
    "schedule.backoff": "it is 1s to 10s always, as in kube-scheduler",
    "schedule.batch": "it is 1024 pods always",
    "schedule.binding_timeout": "it is 10s always",
    "schedule.bindings_in_flight": "it is 128 always",
    "schedule.bounded_scan": "all nodes are looked at: a sample cost a sixth of what the forecast gains",
    "schedule.colocation.hours": "it is 24 always",
    "schedule.due_lead": "it is 5m always",
    "schedule.gangs.pause": "it is 1m always",
    "schedule.gangs.timeout": "it is 1m always; a PodGroup says scheduleTimeoutSeconds",
    "schedule.gather": "it is 50ms always",
    "schedule.gpu.balance": "cores, memory and cards weigh 1, 1 and 3 always",
    "schedule.gpu.dra": "20s to write claims and 10m until devices are ready, always",
    "schedule.gpu.idle_cpu.ceiling": "schedule.colocation.ceiling counts for offline pods, too",
    "schedule.gpu.idle_cpu.dry_run": "instead of true set evict: false, which only reports evictions",
    "schedule.gpu.idle_cpu.hours": "it is 6 always",
    "schedule.gpu.idle_cpu.lead": "it is 30m always",
    "schedule.gpu.idle_cpu.priority_below": "schedule.colocation.priority_below counts for offline pods, too",
    "schedule.gpu.idle_cpu.slack": "it is 0.05 always",
    "schedule.gpu.mix": "which pods are expected to come follows those of the last days always",
    "schedule.gpu.slack": "it is 1 always",
    "schedule.gpu.tide.blind_margin": "it is 0.1 always",
    "schedule.gpu.tide.dead_band": "it is 2 GPUs always",
    "schedule.gpu.tide.dwell": "it is 2h always",
    "schedule.gpu.tide.every": "it is 30s always",
    "schedule.gpu.tide.half_life": "it is 6h always",
    "schedule.gpu.tide.margin": "it is 0.02 always; reserve_gpus keeps more free",
    "schedule.gpu.tide.notice": "it is 1m always; grace is the time for checkpoints",
    "schedule.gpu.tide.preview_hours": "it is 24 always",
    "schedule.gpu.tide.spread": "it is 0.05 always; reserve_gpus keeps more free",
    "schedule.job.ceiling": "schedule.colocation.ceiling counts for jobs, too",
    "schedule.job.due_lead": "it is 5m always",
    "schedule.job.serverless.providers[].backoff_initial": "it is 30s always",
    "schedule.job.serverless.providers[].backoff_longest": "it is 10m always",
    "schedule.job.storm.grace": "it is 2m always",
    "schedule.job.storm.lead": "it is 5m always",
    "schedule.job.storm.most_room": "it is 0.5 always",
    "schedule.job.valley.every": "it is 10s always",
    "schedule.job.valley.first_wait": "it is 5s always",
    "schedule.job.valley.hours": "it is 24 always",
    "schedule.job.valley.keep_off_peak": "jobs keep off peaks always",
    "schedule.job.valley.least_gain": "it is 0.05 always",
    "schedule.job.valley.margin": "it is 1m always",
    "schedule.job.valley.reserve": "it is 15m always",
    "schedule.job.valley.step": "it is 5m always",
    "schedule.most_events": "it is 10000 always",
    "schedule.preemption.candidates_share": "8 nodes are tried always",
    "schedule.preemption.least_candidates": "8 nodes are tried always",
    "schedule.preemption.protect_started": "it is 1m always",
    "schedule.quantum": "it is 64 pods always",
    "schedule.score_per_point": "it is 0.2 always; weigh scores by scorer.scores.weights or policies",
    "schedule.shards.balance_every": "it is 30s always",
    "schedule.shards.loan": "it is 30s always",
    "schedule.shards.most_difference": "it is 0.1 always",
    "schedule.shards.moves": "it is 20 nodes always",
    "schedule.shards.passes": "it is 1 always",
    "schedule.unschedulable_flush": "it is 5m always, as in kube-scheduler",
    "scorer.deadline": "it is 10s always",
    "scorer.ladder": "36h and 14d for models, 5m for measurements, 15m for the cluster, always",
    "scorer.max_nodes": "it is 50000 always",
    "scorer.model_every": "it is 30s always",
    "scorer.overview_every": "it is 1m always",
    "scorer.scale_out_every": "it is 5m always",
    "scorer.scores.water_levels.hysteresis": "it is 0.05 always",
    "scorer.self_check_every": "it is 1h always",
    "webhook.advice.advisor.timeout": "it is 300ms always",
    "webhook.advice.alive_for": "it is 2s always",
    "webhook.certificates.ahead": "it is 1d always",
    "webhook.certificates.authority_lifetime": "it is 365d always",
    "webhook.certificates.every": "it is 1m always",
    "webhook.certificates.lifetime": "it is 30d always",
    "webhook.certificates.settle": "it is 10s always",
    "webhook.receive_timeout": "it is 5s always",
}

# Groups that services share.
_REMOVED_FROM_SHARED: Final[dict[str, str]] = {
    f"{service}.{key}": why
    for service in (*_SERVICES, "autoscale.external_metrics")
    for key, why in _FIXED_OF_SERVERS.items()
}

FORMER: Final[dict[str, str]] = {**_RENAMED_AROUND_MODELS, **_RENAMED_AROUND_PLACING, **_RENAMED_TO_SHARED}
"""New key by old one."""

_ALL_PROFILES: Final = "which counts for pods of every profile"
_ALL_PLACING: Final = "which counts for our loops, the extender and the advisor"

WIDER: Final[dict[str, str]] = {
    "extender.highest_peaks": _ALL_PLACING,
    "extender.rare_devices": _ALL_PLACING,
    "schedule.highest_peaks": _ALL_PLACING,
    "schedule.job.longest_wait": _ALL_PROFILES,
    "schedule.job.queues": f"{_ALL_PROFILES}; a queue with `profiles: [job]` takes jobs only (docs/use/queues.md)",
    "schedule.rare_devices": _ALL_PLACING,
    "webhook.advice.excluded_namespaces": "which counts for learning, moves, resizes and replica metrics, too",
}
"""By key of FORMER: what its new key counts for in addition."""

REMOVED: Final[dict[str, str]] = {**_REMOVED_AROUND_MODELS, **_REMOVED_AROUND_PLACING, **_REMOVED_FROM_SHARED}
"""By key that exists no more: a clause that says why, or what to use instead."""
