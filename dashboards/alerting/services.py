"""What did services use? Usage of pods, recorded by `forecast-scheduler rules`, added up by the service they belong to.

Services are named as everywhere (forecast/service_key.py), by the labels of `forecast_service_predicted_peak`:
namespace, kind, name. Pods of DaemonSets and static pods belong to their node, have no predicted peak, and are left
out.

    controller of the pod      kind, name
    ReplicaSet, Job            by kube_replicaset_owner and kube_job_owner; else by hash or time at the end of its name
    none                       Pod, its own name
    anything else              that controller

`forecast_service_predicted_peak` is the peak of one pod: `forecast:service_pod_peak:1d` compares with it.
"""

from __future__ import annotations

from typing import Final

from dashboards.alerting.peaks import DAY, HALF_HOUR, Rule, rule
from forecast.service_key import HASH_SUFFIX
from trainer.prometheus.recording_rules import POD_INFO, POD_USAGE

_SERVICE: Final = "by (cluster, namespace, kind, name, resource)"
_POD: Final = "by (cluster, namespace, pod)"

# The time at the end of the name of a CronJob's Job: minutes since 1970, or seconds before Kubernetes 1.21. The same
# bounds as in forecast/service_key.py, digit by digit: from 26,000,000 on, and from 1,400,000,000 to 1,999,999,999.
_DUE: Final = "-((2[6-9]|[3-9][0-9])[0-9]{6}|1[4-9][0-9]{8})"


def service_peaks() -> list[Rule]:
    """Usage and peaks of services, of all their pods together and of one."""
    usage = f"max by (cluster, namespace, pod, resource) ({POD_USAGE})"
    by_service = f"{usage} * on (cluster, namespace, pod) group_left (kind, name) forecast:pod_service"
    rules = [rule("forecast:pod_service", _one_of_each_pod(f"{_by_owner()} or on (cluster, namespace, pod) {_pods()}"))]
    for prefix, aggregation in (("forecast:service", "sum"), ("forecast:service_pod", "avg")):
        rules += [
            rule(f"{prefix}_usage", f"{aggregation} {_SERVICE} ({by_service})"),
            rule(f"{prefix}_usage:30m", f"avg_over_time({prefix}_usage{HALF_HOUR})"),
            rule(f"{prefix}_peak:1d", f"max_over_time({prefix}_usage:30m{DAY})"),
        ]
    return rules


def _pods() -> str:
    """Pods with kind and name of their service as the names say it. `owner` is Kind/name of the controller."""
    labels = "cluster, namespace, pod, created_by_kind, created_by_name"
    pods = f'group by ({labels}) ({POD_INFO}{{created_by_kind!~"DaemonSet|Node"}})'
    with_owner = f'label_join({pods}, "owner", "/", "created_by_kind", "created_by_name")'
    steps = (
        ("kind", "$1", "created_by_kind", "(.+)"),
        ("name", "$1", "created_by_name", "(.+)"),
        ("kind", "Deployment", "owner", f"ReplicaSet/.+{HASH_SUFFIX}"),
        ("name", "$1", "owner", f"ReplicaSet/(.+){HASH_SUFFIX}"),
        ("kind", "CronJob", "owner", f"Job/.+{_DUE}"),
        ("name", "$1", "owner", f"Job/(.+){_DUE}"),
        # An object without an owner carries "<none>"; older versions of kube-state-metrics leave it empty.
        ("owner", "Pod", "created_by_kind", "(<none>)?"),
        ("owner", "Pod", "created_by_name", "(<none>)?"),
        ("kind", "Pod", "owner", "Pod"),
    )
    named = _replaced(with_owner, *steps)
    own_name = f'label_join({named}, "of_pod", "/", "owner", "pod")'
    return _replaced(own_name, ("name", "$1", "of_pod", "Pod/([^/]+)"))


def _by_owner() -> str:
    """Those whose controller is a ReplicaSet or Job of which kube-state-metrics knows the owner."""
    return f"{_pods()} * on (cluster, namespace, owner) group_left (kind, name) {_owners()}"


def _owners() -> str:
    """Kind and name of who owns a ReplicaSet or Job, by namespace and `owner`; one without is the service itself."""
    found = []
    for kind, metric, label in (
        ("ReplicaSet", "kube_replicaset_owner", "replicaset"),
        ("Job", "kube_job_owner", "job_name"),
    ):
        series = (
            f'group by (cluster, namespace, {label}, owner_kind, owner_name) ({metric}{{owner_is_controller!="false"}})'
        )
        steps = (
            ("owner", f"{kind}/$1", label, "(.+)"),
            ("kind", "$1", "owner_kind", "(.+)"),
            ("name", "$1", "owner_name", "(.+)"),
            ("kind", kind, "owner_kind", "(<none>)?"),
        )
        named = _replaced(series, *steps)
        itself = f'label_join({named}, "itself", "/", "owner_kind", "{label}")'
        found.append(_replaced(itself, ("name", "$1", "itself", "(?:<none>)?/(.+)")))
    by_owner = f"group by (cluster, namespace, owner, kind, name) ({' or '.join(found)})"
    return f"topk by (cluster, namespace, owner) (1, {by_owner})"


def _one_of_each_pod(expression: str) -> str:
    # A pod that was made again under its name may be there twice, and with it twice in a sum.
    return f"topk {_POD} (1, group by (cluster, namespace, pod, kind, name) ({expression}))"


def _replaced(expression: str, *steps: tuple[str, str, str, str]) -> str:
    """label_replace, step by step: destination, replacement, source, regex (anchored at both ends)."""
    for target, replacement, source, regex in steps:
        expression = f'label_replace({expression}, "{target}", "{replacement}", "{source}", "{regex}")'
    return expression
