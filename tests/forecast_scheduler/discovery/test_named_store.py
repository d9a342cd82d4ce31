"""A store that the user names: of several clusters in it ours is read, and never one that is not ours."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote_plus

import pytest

from base.errors import InputError
from forecast_scheduler.commands.metrics_store import store_if_any, store_to_learn_from
from forecast_scheduler.settings.document import Settings
from kube.client.cluster_access import ClusterAccess
from testing.servers.token_service import TokenService
from tests.kube.client.test_kubeconfig import written

EAST = [{"node": f"east-{one}", "internal_ip": f"10.0.0.{one}", "cluster": "east"} for one in (1, 2)]
WEST = [{"node": f"west-{one}", "internal_ip": f"10.1.0.{one}", "cluster": "west"} for one in (1, 2)]


def store(series: list[dict[str, str]]) -> TokenService:
    """It knows these nodes; a query that chooses a cluster gets its own."""

    def answer(path: str, form: Mapping[str, str]) -> tuple[int, str]:
        query = unquote_plus(path)
        chosen = [
            one
            for one in series
            if all(f'cluster="{name}"' not in query for name in {"east", "west"} - {one["cluster"]})
        ]
        vector = [{"metric": one, "value": [1.8e9, "1"]} for one in chosen]
        return 200, json.dumps({"status": "success", "data": {"resultType": "vector", "result": vector}})

    return TokenService(answer)


@pytest.fixture
def west(tmp_path: Path) -> Iterator[ClusterAccess]:
    """A cluster with the nodes of the west."""
    nodes = [
        {
            "metadata": {"name": one["node"]},
            "status": {"addresses": [{"type": "InternalIP", "address": one["internal_ip"]}]},
        }
        for one in WEST
    ]
    with TokenService(lambda path, form: (200, json.dumps({"items": nodes}))) as server:
        port = int(server.host.rpartition(":")[2])
        file = written(tmp_path / "config", "west", port=port)
        yield ClusterAccess(file, "west")


def test_of_several_clusters_ours_is_measured_and_learned_from(west: ClusterAccess) -> None:
    with store([*EAST, *WEST]) as server:
        url = f"http://{server.host}"
        for found in (store_to_learn_from(Settings(), url, west), store_if_any(Settings(), url, west)):
            assert found is not None and found.cluster == {"cluster": "west"}


def test_a_store_of_another_cluster_is_not_learned_from(west: ClusterAccess) -> None:
    with store(EAST) as server, pytest.raises(InputError, match=r"2 nodes such as east-1, and none of the 2 of west"):
        store_to_learn_from(Settings(), f"http://{server.host}", west)


def test_the_settings_choose_no_other_cluster_for_a_context(west: ClusterAccess) -> None:
    settings = Settings()
    settings = settings.replace(prometheus=settings.prometheus.replace(cluster={"cluster": "east"}))
    with store([*EAST, *WEST]) as server, pytest.raises(InputError, match=r"another cluster by .*cluster=east"):
        store_to_learn_from(settings, f"http://{server.host}", west)
