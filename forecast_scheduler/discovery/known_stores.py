"""Names and labels by which charts, operators and manifests install the stores that speak PromQL. Data, no I/O.

Read from kube-prometheus, kube-thanos, the charts kube-prometheus-stack, prometheus, mimir-distributed and those of
VictoriaMetrics and Bitnami, OpenShift's cluster-monitoring-operator, Istio's add-ons and Rancher's monitoring.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class KnownStore:
    """One product, or one part of it, that answers queries. Patterns match as a whole.

    labels : "program/part", as ranking.py reads them from the labels of a Service
    name   : of the Service, if its labels match no product
    paths  : what comes before /api/v1, in the order of trying
    """

    product: str
    labels: re.Pattern[str]
    name: re.Pattern[str]
    paths: tuple[str, ...]


def _known(product: str, labels: str, name: str, *paths: str) -> KnownStore:
    return KnownStore(product, re.compile(labels), re.compile(name), paths)


KNOWN_STORES: Final = (
    _known(
        "Thanos query frontend",
        r"(.*-)?thanos(-query-frontend)?/(query-frontend|query-cache)",
        r"(.*-)?thanos-query-frontend",
        "",
    ),
    _known(
        "Thanos query",
        r"(.*-)?thanos(-query|-querier)?/(query|querier|query-layer)",
        r"(.*-)?thanos-quer(y|ier)",
        "",
    ),
    _known(
        "Mimir",
        r"(.*-)?(mimir|enterprise-metrics)/(gateway|nginx|query-frontend)?",
        r"(.*-)?mimir(-gateway|-nginx|-query-frontend)?",
        "/prometheus",
    ),
    _known("Cortex", r"cortex/(nginx|query-frontend)", r"(.*-)?cortex-(nginx|query-frontend)", "/prometheus"),
    _known(
        "VictoriaMetrics cluster",
        r"vmselect/.*|victoria-metrics-cluster/vmselect",
        r"(.*-)?vmselect(-.*)?",
        "/select/0/prometheus",
    ),
    _known(
        "VictoriaMetrics",
        r"vmsingle/.*|victoria-metrics(-single)?/(server)?",
        r"(.*-)?vmsingle(-.*)?|(.*-)?victoria-?metrics(-single)?(-server)?",
        "",
    ),
    _known(
        "Prometheus",
        r"(.*-)?prometheus(-server)?/(prometheus|server)?",
        r"(.*-)?prometheus(-.*)?",
        "",
        "/prometheus",
    ),
)
"""The store that keeps the longest history comes first: it is taken if several know the nodes."""

OTHER_PROGRAMS: Final = re.compile(
    r"alertmanager|grafana|exporter|state-metrics|metrics-server|pushgateway|adapter|vmagent|vmalert|vminsert|vmstorage|loki|tempo|"
    r"jaeger|(^|-)(operator|discovery|sidecar|store-?gateway|store|compact(or)?|ruler?|receiver?|ingester|distributor|"
    r"webhook|bucketweb|cache|kubelet|etcd|coredns|kube-dns|kube-scheduler|kube-proxy|kube-controller-manager|"
    r"memcached|minio|gossip-ring)(-headless)?$"
)
"""In the name or the labels of a Service that stands beside a store and answers no PromQL."""

PLACES_OF_MONITORING: Final = re.compile(
    r"monitor|observ|metric|prometheus|thanos|mimir|victoria|telemetry|kube-system"
)
"""In a namespace: a store of the cluster is there more often than that of one application."""

PLATFORM_NAMESPACES: Final = frozenset(
    (
        *("kube-system", "monitoring", "observability", "prometheus", "thanos", "mimir", "victoria-metrics", "vm"),
        *("openshift-monitoring", "cattle-monitoring-system", "gmp-system"),
    )
)
"""Where charts and operators install a store for the cluster by default. Tenants have namespaces of other names."""
