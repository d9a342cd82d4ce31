"""Ten more clusters, written from charts' renderings and users' manifests before the search was tried on them.

The first try found nine: Thanos by hand, whose Services have neither labels nor a port of its own, was not asked.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.forecast_scheduler.discovery.layouts import Layout, service

FRESH: Sequence[Layout] = (
    Layout(
        "kube-prometheus-stack under a name of one's own, with a Thanos sidecar and ruler",
        "http://o11y/metrics-prometheus:9090",
        (
            service("o11y/metrics-alertmanager", {"http-web": 9093, "reloader-web": 8080}, app="metrics-alertmanager"),
            service("o11y/metrics-operator", {"https": 443}, app="metrics-operator"),
            service("o11y/metrics-prometheus", {"http-web": 9090, "reloader-web": 8080}, app="metrics-prometheus"),
            service("o11y/metrics-thanos-discovery", {"grpc": 10901, "http": 10902}, headless=True),
            service("o11y/thanos-ruler-operated", {"web": 10902, "grpc": 10901}, headless=True),
            service("o11y/prometheus-operated", {"http-web": 9090}, headless=True, operated_prometheus="true"),
        ),
    ),
    Layout(
        "prometheus-community/prometheus with a short release",
        "http://prom/p-prometheus-server:80",
        (
            service("prom/p-alertmanager", {"http": 9093}, name="alertmanager"),
            service("prom/p-kube-state-metrics", {"http": 8080}, name="kube-state-metrics", component="metrics"),
            service("prom/p-prometheus-node-exporter", {"metrics": 9100}, name="prometheus-node-exporter"),
            service("prom/p-prometheus-pushgateway", {"http": 9091}, name="prometheus-pushgateway"),
            service("prom/p-prometheus-server", {"http": 80}, name="prometheus", component="server"),
        ),
    ),
    Layout(
        "victoria-metrics-k8s-stack with a cluster",
        "http://monitoring/vmselect-vmks-victoria-metrics-k8s-stack:8481/select/0/prometheus",
        (
            service("monitoring/vmagent-vmks-victoria-metrics-k8s-stack", {"http": 8429}, name="vmagent"),
            service("monitoring/vmalert-vmks-victoria-metrics-k8s-stack", {"http": 8080}, name="vmalert"),
            service("monitoring/vmauth-vmks-victoria-metrics-k8s-stack", {"http": 8427}, name="vmauth"),
            service("monitoring/vminsert-vmks-victoria-metrics-k8s-stack", {"http": 8480}, name="vminsert"),
            service("monitoring/vmselect-vmks-victoria-metrics-k8s-stack", {"http": 8481}, name="vmselect"),
            service(
                "monitoring/vmstorage-vmks-victoria-metrics-k8s-stack",
                {"http": 8482, "vminsert": 8400, "vmselect": 8401},
                headless=True,
                name="vmstorage",
            ),
            service(
                "monitoring/vmks-victoria-metrics-operator",
                {"http": 8080, "webhook": 9443},
                name="victoria-metrics-operator",
            ),
        ),
    ),
    Layout(
        "Bitnami Prometheus, not its operator",
        "http://metrics/prometheus-server:80",
        (
            service("metrics/prometheus-alertmanager", {"http": 80}, name="prometheus", component="alertmanager"),
            service(
                "metrics/prometheus-alertmanager-headless",
                {"tcp-cluster": 9094},
                headless=True,
                name="prometheus",
                component="alertmanager",
            ),
            service("metrics/prometheus-server", {"http": 80}, name="prometheus", component="server"),
        ),
    ),
    Layout(
        "mimir-distributed 6 with Kafka",
        "http://mimir/lgtm-mimir-gateway:80/prometheus",
        (
            service(
                "mimir/lgtm-mimir-alertmanager",
                {"http-metrics": 8080, "grpc": 9095},
                name="mimir",
                component="alertmanager",
            ),
            service(
                "mimir/lgtm-mimir-distributor",
                {"http-metrics": 8080, "grpc": 9095},
                name="mimir",
                component="distributor",
            ),
            service(
                "mimir/lgtm-mimir-gateway",
                {"http-metrics": 80, "legacy-http-metrics": 8080},
                name="mimir",
                component="gateway",
            ),
            service("mimir/lgtm-mimir-kafka", {"kafka": 9092}, name="mimir", component="kafka"),
            service(
                "mimir/lgtm-mimir-overrides-exporter",
                {"http-metrics": 8080},
                name="mimir",
                component="overrides-exporter",
            ),
            service(
                "mimir/lgtm-mimir-querier", {"http-metrics": 8080, "grpc": 9095}, name="mimir", component="querier"
            ),
            service(
                "mimir/lgtm-mimir-query-frontend",
                {"http-metrics": 8080, "grpc": 9095},
                name="mimir",
                component="query-frontend",
            ),
            service(
                "mimir/lgtm-mimir-query-scheduler",
                {"http-metrics": 8080, "grpc": 9095},
                name="mimir",
                component="query-scheduler",
            ),
            service("mimir/lgtm-rollout-operator", {"https": 443}, name="rollout-operator"),
        ),
    ),
    Layout(
        "Bitnami Thanos with receivers and no frontend",
        "http://thanos/long-term-thanos-query:9090",
        (
            service("thanos/long-term-thanos-bucketweb", {"http": 8080}, name="thanos", component="bucketweb"),
            service("thanos/long-term-thanos-compactor", {"http": 9090}, name="thanos", component="compactor"),
            service("thanos/long-term-thanos-query", {"http": 9090}, name="thanos", component="query"),
            service("thanos/long-term-thanos-query-grpc", {"grpc": 10901}, name="thanos", component="query"),
            service(
                "thanos/long-term-thanos-receive",
                {"http": 10902, "grpc": 10901, "remote": 19291},
                name="thanos",
                component="receive",
            ),
            service(
                "thanos/long-term-thanos-storegateway",
                {"http": 9090, "grpc": 10901},
                name="thanos",
                component="storegateway",
            ),
        ),
    ),
    Layout(
        "OpenShift with user workloads and a hub's observability beside it",
        "https://openshift-monitoring/thanos-querier:9091",
        (
            service(
                "openshift-monitoring/prometheus-k8s",
                {"web": 9091, "metrics": 9092},
                tls=True,
                name="prometheus",
                component="prometheus",
            ),
            service(
                "openshift-monitoring/thanos-querier",
                {"web": 9091, "tenancy": 9092, "tenancy-rules": 9093, "metrics": 9094},
                tls=True,
                name="thanos-query",
                component="query-layer",
            ),
            service(
                "openshift-user-workload-monitoring/prometheus-user-workload",
                {"metrics": 9091, "thanos-proxy": 10902},
                tls=True,
                name="prometheus",
                component="prometheus",
            ),
            service(
                "openshift-user-workload-monitoring/thanos-ruler",
                {"web": 9091, "tenancy": 9092},
                tls=True,
                name="thanos-ruler",
            ),
            service(
                "open-cluster-management-observability/observability-thanos-query-frontend",
                {"http": 9090},
                name="thanos-query-frontend",
                component="query-cache",
            ),
            service("open-cluster-management-observability/rbac-query-proxy", {"http": 8080}, name="rbac-query-proxy"),
        ),
    ),
    Layout(
        "Rancher's monitoring beside those of two projects",
        "http://cattle-monitoring-system/rancher-monitoring-prometheus:9090",
        (
            service(
                "cattle-monitoring-system/rancher-monitoring-prometheus",
                {"http-web": 9090},
                app="rancher-monitoring-prometheus",
            ),
            service(
                "cattle-monitoring-system/rancher-monitoring-prometheus-adapter",
                {"https": 443},
                name="prometheus-adapter",
            ),
            service(
                "cattle-project-p-abc-monitoring/cattle-project-p-abc-mon-prometheus",
                {"http-web": 9090},
                app="project-prometheus",
            ),
            service(
                "cattle-project-p-def-monitoring/cattle-project-p-def-mon-prometheus",
                {"http-web": 9090},
                app="project-prometheus",
            ),
        ),
    ),
    Layout(
        "Google's managed store behind its frontend",
        "http://default/frontend:9090",
        (
            service("default/frontend", {"web": 9090}),
            service("gmp-system/alertmanager", {"alertmanager": 9093}),
            service("gmp-system/gmp-operator", {"legacy": 8443, "webhook": 443}),
            service("gmp-system/rule-evaluator", {"rule-evaluator": 9092}),
        ),
    ),
    Layout(
        "Grafana's k8s-monitoring with Alloy, and Thanos by hand without labels",
        "http://thanos/query-frontend:80",
        (
            service("grafana/k8smon-alloy-metrics", {"http-metrics": 12345}, name="alloy-metrics"),
            service("grafana/k8smon-alloy-metrics-cluster", {"http": 12345}, headless=True, name="alloy-metrics"),
            service(
                "grafana/k8smon-kube-state-metrics", {"http": 8080}, name="kube-state-metrics", component="metrics"
            ),
            service("grafana/k8smon-opencost", {"http": 9003}, name="opencost"),
            service("thanos/query-frontend", {"http": 80}),
            service("thanos/query", {"http": 80, "grpc": 10901}),
            service("thanos/store", {"grpc": 10901}),
        ),
    ),
)
