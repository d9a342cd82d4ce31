"""Two clusters whose nodes have the same names, behind one store: each context of the kubeconfig finds its own."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from forecast_scheduler.discovery.cluster_store import NoStoreFound, find_store, of_this_cluster
from kube.client.cluster_access import ClusterAccess
from testing.local_cluster.running import LocalCluster, Ports
from testing.local_cluster.stores import Store
from trainer.prometheus.metrics_store import MetricsStore
from trainer.prometheus.prometheus_settings import PrometheusOptions

pytestmark = pytest.mark.long
_NODES = {"east": 50, "west": 17}


@pytest.mark.parametrize("kind", [Store.PROMETHEUS, Store.VICTORIAMETRICS, Store.THANOS])
def test_each_context_reads_its_own_cluster(kind: Store, tmp_path: Path) -> None:
    options = PrometheusOptions()
    with LocalCluster(tmp_path, days=7, ports=Ports().free(), store=kind, second=True) as cluster:
        for context, n_nodes in _NODES.items():
            access = ClusterAccess(cluster.kubeconfig, context)
            found = find_store(options, access)
            assert found.cluster == {"cluster": context}
            with closing(found.connect(options)) as connection:
                assert connection.instant("nodes", "count(kube_node_info)").values.tolist() == [n_nodes]
            # The same of a store that the user names; without a choice it has both.
            named = MetricsStore(cluster.prometheus_url)
            assert of_this_cluster(named, options, access).cluster == {"cluster": context}
            with closing(named.connect(options)) as connection:
                assert connection.instant("nodes", "count(kube_node_info)").values.tolist() == [sum(_NODES.values())]


def test_a_store_that_wants_a_token_is_named_and_not_taken(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    with LocalCluster(tmp_path, days=7, ports=Ports().free(), store=Store.TOKEN) as cluster:
        with pytest.raises(NoStoreFound, match="pass --prometheus URL"):
            find_store(PrometheusOptions(), ClusterAccess(cluster.kubeconfig))
        assert "it asks for credentials, which do not pass the API server" in caplog.text
