"""Keys of earlier versions: what they are called now, or why they are gone.

A key stands as a document has it, `schedule.job.queues`; a list is `[]`, a name that the user chooses is `NAME`. A
group stands for all keys below it. `forecast-scheduler settings migrate` goes by both tables.
"""

from __future__ import annotations

from typing import Final

# Sections prometheus, train, replay, capacity, requests, rebalance and autoscale.
_RENAMED_AROUND_MODELS: Final[dict[str, str]] = {
    # one line a key
}

# Sections scorer, extender, schedule, node_rules, advise and webhook.
_RENAMED_AROUND_PLACING: Final = {
    "extender.rare_devices": "node_rules.cards",
    "schedule.gpu.cards": "node_rules.cards",
    "schedule.gpu.devices": "node_rules.devices",
    "schedule.gpu.groups": "node_rules.machine_groups",
    "schedule.gpu.topology": "node_rules.topology",
    "schedule.job.due_lead": "schedule.due_lead",
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
    "webhook.advice.lease_name": "advise.leader_election.name",
    "webhook.advice.lease_namespace": "advise.leader_election.namespace",
    **{f"autoscale.external_metrics.{key}": f"autoscale.external_metrics.serving.{key}" for key in _SERVER},
}

# Sections prometheus, train, replay, capacity, requests, rebalance and autoscale.
_REMOVED_AROUND_MODELS: Final[dict[str, str]] = {
    # one line a key
}

# Sections scorer, extender, schedule, node_rules, advise and webhook.
_REMOVED_AROUND_PLACING: Final[dict[str, str]] = {
    # one line a key
}

# Groups that services share.
_REMOVED_FROM_SHARED: Final[dict[str, str]] = {
    f"{service}.{key}": why
    for service in (*_SERVICES, "autoscale.external_metrics")
    for key, why in _FIXED_OF_SERVERS.items()
}

FORMER: Final[dict[str, str]] = {**_RENAMED_AROUND_MODELS, **_RENAMED_AROUND_PLACING, **_RENAMED_TO_SHARED}
"""New key by old one. Those of schedule.job count for pods of every profile now; a queue with `profiles: [job]` takes
those of jobs only (docs/use/queues.md)."""

REMOVED: Final[dict[str, str]] = {**_REMOVED_AROUND_MODELS, **_REMOVED_AROUND_PLACING, **_REMOVED_FROM_SHARED}
"""By key that exists no more: a clause that says why, or what to use instead."""
