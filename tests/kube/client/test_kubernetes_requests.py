from __future__ import annotations

from kube.client.kubernetes_requests import list_request, watch_request
from kube.decoding.decoding import WATCHED, Kind


def test_a_list_is_asked_for_in_pages_of_all_namespaces() -> None:
    first = list_request(WATCHED[Kind.PODS], limit=500)
    assert (first.path, first.query, first.accept) == ("/api/v1/pods", {"limit": "500"}, "application/json")
    assert list_request(WATCHED[Kind.PODS], limit=500, continue_token="abc").query == {
        "limit": "500",
        "continue": "abc",
    }
    assert list_request(WATCHED[Kind.NODES], limit=0).query == {}


def test_a_watch_names_where_it_resumes_and_asks_for_bookmarks() -> None:
    assert watch_request(WATCHED[Kind.NODES], "77", timeout_seconds=300).query == {
        "watch": "true",
        "resourceVersion": "77",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "300",
    }


def test_of_replica_sets_only_metadata_is_asked_for() -> None:
    watched = WATCHED[Kind.REPLICA_SETS]
    assert "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1" in list_request(watched, limit=1).accept
    assert "as=PartialObjectMetadata;" in watch_request(watched, "1", timeout_seconds=1).accept


def test_every_kind_has_a_path_that_ends_with_its_name() -> None:
    for kind in Kind:
        path = list_request(WATCHED[kind], limit=1).path
        assert path.startswith(("/api/v1/", "/apis/")) and path.endswith(f"/{kind.value}")


def test_of_storage_more_than_metadata_is_asked_for() -> None:
    for kind in (Kind.VOLUMES, Kind.CLAIMS, Kind.STORAGE_CLASSES, Kind.CSI_NODES, Kind.VOLUME_ATTACHMENTS):
        assert list_request(WATCHED[kind], limit=1).accept == "application/json"
