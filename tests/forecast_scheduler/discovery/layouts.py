"""Services as charts, operators and manifests make them: 20 clusters with a store, and what stands beside it.

Names, labels and ports are those of the projects' manifests; release names and namespaces are made up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_LABELS = {"name": "app.kubernetes.io/name", "component": "app.kubernetes.io/component"}

Service = Mapping[str, Any]


def service(
    place: str, ports: Mapping[str, int], *, headless: bool = False, tls: bool = False, **labels: str
) -> Service:
    """One Service. place: namespace/name; labels: name and component are those of app.kubernetes.io."""
    namespace, name = place.split("/")
    metadata: dict[str, Any] = {"namespace": namespace, "name": name}
    metadata["labels"] = {_LABELS.get(key, key.replace("_", "-")): value for key, value in labels.items()}
    if tls:
        metadata["annotations"] = {"service.beta.openshift.io/serving-cert-secret-name": f"{name}-tls"}
    spec = {
        "ports": [{"name": key.replace("_", "-"), "port": port, "protocol": "TCP"} for key, port in ports.items()],
        "clusterIP": "None" if headless else "10.0.0.7",
        "type": "ClusterIP",
    }
    return {"metadata": metadata, "spec": spec}


def listing(services: Sequence[Service]) -> bytes:
    """As the API server lists them."""
    return json.dumps({"kind": "ServiceList", "items": list(services), "metadata": {}}).encode()


@dataclass(frozen=True)
class Layout:
    """A cluster. store: scheme://namespace/name:port/path of the one that knows its nodes."""

    name: str
    store: str
    services: Sequence[Service]


BESIDE: Sequence[Service] = (
    service("default/kubernetes", {"https": 443}, component="apiserver", provider="kubernetes"),
    service("kube-system/kube-dns", {"dns-tcp": 53, "metrics": 9153}, k8s_app="kube-dns"),
    service("kube-system/metrics-server", {"https": 443}, k8s_app="metrics-server"),
    service("monitoring/grafana", {"http": 3000}, name="grafana", component="grafana"),
    service("monitoring/prometheus-grafana", {"http-web": 80}, name="grafana"),
    service("monitoring/alertmanager-main", {"web": 9093, "reloader-web": 8080}, name="alertmanager"),
    service("monitoring/prometheus-alertmanager", {"http": 9093}, name="alertmanager"),
    service("monitoring/node-exporter", {"https": 9100}, headless=True, name="node-exporter", component="exporter"),
    service("monitoring/prometheus-node-exporter", {"metrics": 9100}, name="prometheus-node-exporter"),
    service("monitoring/kube-state-metrics", {"https-main": 8443, "https-self": 9443}, name="kube-state-metrics"),
    service("monitoring/prometheus-operator", {"https": 8443}, headless=True, name="prometheus-operator"),
    service("monitoring/prometheus-adapter", {"https": 443}, name="prometheus-adapter"),
    service("monitoring/prometheus-pushgateway", {"http": 9091}, name="prometheus-pushgateway"),
    service("monitoring/loki", {"http-metrics": 3100, "grpc": 9095}, name="loki"),
    service("shop/prometheus", {"http": 9090}, name="prometheus", component="server"),  # scrapes the shop alone
    service("linkerd-viz/prometheus", {"admin": 9090}, component="prometheus"),
    service("shop/cart", {"http": 8080, "metrics": 9090}, app="cart"),
    service("shop/checkout", {"http": 80}, app="checkout"),
    service("data/metrics-collector", {"http": 8080}, app="metrics-collector"),
)
"""In every cluster: decoys, and Prometheus servers of single applications."""

LAYOUTS: Sequence[Layout] = (
    Layout(
        "kube-prometheus",
        "http://monitoring/prometheus-k8s:9090",
        [
            service(
                "monitoring/prometheus-k8s",
                {"web": 9090, "reloader-web": 8080},
                name="prometheus",
                component="prometheus",
            ),
            service("monitoring/prometheus-operated", {"web": 9090}, headless=True, operated_prometheus="true"),
        ],
    ),
    Layout(
        "kube-prometheus-stack",
        "http://observability/kube-prometheus-stack-prometheus:9090",
        [
            service(
                "observability/kube-prometheus-stack-prometheus",
                {"http_web": 9090, "reloader_web": 8080},
                app="kube-prometheus-stack-prometheus",
            ),
            service(
                "observability/kube-prometheus-stack-operator", {"https": 443}, app="kube-prometheus-stack-operator"
            ),
            service("observability/kube-prometheus-stack-alertmanager", {"http_web": 9093}),
            service(
                "observability/kube-prometheus-stack-thanos-discovery",
                {"grpc": 10901, "http": 10902},
                headless=True,
                app="kube-prometheus-stack-thanos-discovery",
            ),
        ],
    ),
    Layout(
        "kube-prometheus-stack, whose release is called prometheus-operator",
        "http://infra/prometheus-operator-kube-p-prometheus:9090",
        [
            service(
                "infra/prometheus-operator-kube-p-prometheus",
                {"http_web": 9090},
                app="kube-prometheus-stack-prometheus",
            ),
            service("infra/prometheus-operator-kube-p-operator", {"https": 443}, app="kube-prometheus-stack-operator"),
        ],
    ),
    Layout(
        "the operator alone, with no Service of one's own",
        "http://metrics/prometheus-operated:9090",
        [service("metrics/prometheus-operated", {"web": 9090}, headless=True, operated_prometheus="true")],
    ),
    Layout(
        "prometheus-community/prometheus",
        "http://monitoring/prometheus-server:80",
        [service("monitoring/prometheus-server", {"http": 80}, name="prometheus", component="server")],
    ),
    Layout(
        "prometheus-community/prometheus, an older chart, below a path",
        "http://default/mon-prometheus-server:80/prometheus",
        [service("default/mon-prometheus-server", {"http": 80}, app="prometheus", component="server")],
    ),
    Layout(
        "Bitnami kube-prometheus",
        "http://default/mon-kube-prometheus-prometheus:9090",
        [
            service(
                "default/mon-kube-prometheus-prometheus", {"http": 9090}, name="kube-prometheus", component="prometheus"
            )
        ],
    ),
    Layout(
        "Istio's add-on",
        "http://istio-system/prometheus:9090",
        [service("istio-system/prometheus", {"http": 9090}, name="prometheus", component="server")],
    ),
    Layout(
        "Rancher's monitoring",
        "http://cattle-monitoring-system/rancher-monitoring-prometheus:9090",
        [
            service(
                "cattle-monitoring-system/rancher-monitoring-prometheus",
                {"http_web": 9090},
                app="rancher-monitoring-prometheus",
            )
        ],
    ),
    Layout(
        "kube-thanos",
        "http://thanos/thanos-query:9090",
        [
            service("thanos/thanos-query", {"grpc": 10901, "http": 9090}, name="thanos-query", component="query-layer"),
            service(
                "thanos/thanos-store",
                {"grpc": 10901, "http": 10902},
                headless=True,
                name="thanos-store",
                component="object-store-gateway",
            ),
            service(
                "thanos/thanos-receive",
                {"grpc": 10901, "http": 10902, "remote_write": 19291},
                name="thanos-receive",
                component="database",
            ),
        ],
    ),
    Layout(
        "Bitnami Thanos with a frontend, beside kube-prometheus",
        "http://monitoring/lts-thanos-query-frontend:9090",
        [
            service("monitoring/lts-thanos-query-frontend", {"http": 9090}, name="thanos", component="query-frontend"),
            service("monitoring/lts-thanos-query", {"http": 9090}, name="thanos", component="query"),
            service("monitoring/lts-thanos-query-grpc", {"grpc": 10901}, name="thanos", component="query"),
            service("monitoring/lts-thanos-storegateway", {"http": 9090}, name="thanos", component="storegateway"),
            service("monitoring/lts-thanos-compactor", {"http": 9090}, name="thanos", component="compactor"),
            service("monitoring/prometheus-k8s", {"web": 9090}, name="prometheus", component="prometheus"),
        ],
    ),
    Layout(
        "VictoriaMetrics, single, by its chart",
        "http://vm/vm-victoria-metrics-single-server:8428",
        [
            service(
                "vm/vm-victoria-metrics-single-server",
                {"http": 8428},
                headless=True,
                name="victoria-metrics-single",
                app="server",
            ),
        ],
    ),
    Layout(
        "VictoriaMetrics, single, by its operator",
        "http://monitoring/vmsingle-main-victoria-metrics-k8s-stack:8429",
        [
            service(
                "monitoring/vmsingle-main-victoria-metrics-k8s-stack",
                {"http": 8429},
                name="vmsingle",
                component="monitoring",
            ),
            service("monitoring/vmagent-main", {"http": 8429}, name="vmagent", component="monitoring"),
            service("monitoring/vmalert-main", {"http": 8080}, name="vmalert", component="monitoring"),
            service("monitoring/vmalertmanager-main", {"web": 9093}, name="vmalertmanager", component="monitoring"),
        ],
    ),
    Layout(
        "VictoriaMetrics, a cluster, by its chart",
        "http://tsdb/vmc-victoria-metrics-cluster-vmselect:8481/select/0/prometheus",
        [
            service(f"tsdb/vmc-victoria-metrics-cluster-{part}", ports, name="victoria-metrics-cluster", app=part)
            for part, ports in (
                ("vminsert", {"http": 8480}),
                ("vmselect", {"http": 8481}),
                ("vmstorage", {"http": 8482, "vmselect": 8401}),
            )
        ],
    ),
    Layout(
        "VictoriaMetrics, a cluster, by its operator",
        "http://monitoring/vmselect-main:8481/select/0/prometheus",
        [
            service(f"monitoring/{part}-main", {"http": port}, headless=headless, name=part, component="monitoring")
            for part, port, headless in (("vminsert", 8480, False), ("vmselect", 8481, True), ("vmstorage", 8482, True))
        ],
    ),
    Layout(
        "Mimir with its gateway",
        "http://mimir/mimir-gateway:80/prometheus",
        [
            service("mimir/mimir-gateway", {"http_metrics": 80}, name="mimir", component="gateway"),
            service(
                "mimir/mimir-query-frontend",
                {"http_metrics": 8080, "grpc": 9095},
                name="mimir",
                component="query-frontend",
            ),
            *(
                service(f"mimir/mimir-{part}", {"http_metrics": 8080, "grpc": 9095}, name="mimir", component=part)
                for part in ("distributor", "ingester", "querier", "store-gateway", "compactor", "ruler")
            ),
            service("mimir/mimir-chunks-cache", {"memcached": 11211, "http_metrics": 9150}, headless=True),
        ],
    ),
    Layout(
        "Mimir with nginx",
        "http://lgtm/lgtm-mimir-nginx:80/prometheus",
        [
            service("lgtm/lgtm-mimir-nginx", {"http_metric": 80}, name="mimir", component="nginx"),
            service("lgtm/lgtm-grafana", {"service": 80}, name="grafana"),
            service("lgtm/lgtm-loki-gateway", {"http": 80}, name="loki", component="gateway"),
        ],
    ),
    Layout(
        "OpenShift",
        "https://openshift-monitoring/thanos-querier:9091",
        [
            service(
                "openshift-monitoring/thanos-querier",
                {"web": 9091, "tenancy": 9092, "tenancy_rules": 9093, "metrics": 9094},
                tls=True,
                name="thanos-query",
                component="query-layer",
            ),
            service(
                "openshift-monitoring/prometheus-k8s",
                {"web": 9091, "metrics": 9092},
                tls=True,
                name="prometheus",
                component="prometheus",
            ),
            service(
                "openshift-user-workload-monitoring/prometheus-user-workload",
                {"metrics": 9091},
                tls=True,
                name="prometheus",
            ),
        ],
    ),
    Layout(
        "a store under a name of one's own",
        "http://platform/tsdb:9090",
        [service("platform/tsdb", {"api": 9090}, app="tsdb")],
    ),
    Layout(
        "one of nine Prometheus servers, the others by teams",
        "http://ops-monitoring/prometheus-main:9090",
        [
            service("ops-monitoring/prometheus-main", {"web": 9090}, app="prometheus-main"),
            *(
                service(f"team-{team}/prometheus-server", {"http": 80}, name="prometheus", component="server")
                for team in "abcdefgh"
            ),
        ],
    ),
)
