"""Table of framework/plugins/imagelocality/image_locality_test.go."""

from __future__ import annotations

from typing import Any

import pytest

from kube.objects.kubernetes_version import KubernetesVersion
from kube.objects.objects import NodeImage
from placement.scores.image_locality import ImageLocality, normalized_image_name
from testing.placement.views import node_named, pod_with, scores, view_of

MB = 1024 * 1024


def image(size: int, *tags: str) -> NodeImage:
    return NodeImage(tuple(f"gcr.io/{size}:{tag}" for tag in tags or ("latest",)), size * MB)


NODES = {
    "40-300-2000": [image(40, "latest", "v1", "v1"), image(300, "latest", "v1"), image(2000)],
    "250-10": [image(250), image(10, "latest", "v1")],
    "600-40-900": [image(600), image(40), image(900)],
    "300-600-900": [image(300), image(600), image(900)],
    "4000-30": [image(4000), image(30)],
    "20-30-40": [image(20), image(30), image(40)],
    "none": [],
}


def spec(*sizes: int, init: int | None = None, volume: int | None = None) -> dict[str, Any]:
    def containers(*of: int | None) -> list[dict[str, Any]]:
        return [{"name": "c", "image": f"gcr.io/{size}"} for size in of if size is not None]

    volumes = [] if volume is None else [{"name": "v", "image": {"reference": f"gcr.io/{volume}"}}]
    return {"containers": containers(*sizes), "initContainers": containers(init), "volumes": volumes}


@pytest.mark.parametrize(
    ("wanted", "nodes", "expected"),
    [
        pytest.param(spec(40, 250), ["40-300-2000", "250-10"], [0, 5], id="two images on two nodes, the larger counts"),
        pytest.param(spec(40, 300), ["40-300-2000", "250-10"], [7, 0], id="two images on one node"),
        pytest.param(spec(10, 4000), ["4000-30", "250-10"], [100, 0], id="if exceed limit, use limit"),
        pytest.param(spec(10, 4000), ["4000-30", "250-10", "none"], [66, 0, 0], id="with a node without images"),
        pytest.param(spec(300, 600, 900), ["600-40-900", "300-600-900", "none"], [32, 36, 0], id="large images"),
        pytest.param(spec(30, 40), ["20-30-40", "4000-30"], [1, 0], id="multiple small images"),
        pytest.param(spec(30, volume=300), ["300-600-900", "4000-30"], [6, 0], id="image volume counts as a container"),
        pytest.param(spec(30, init=300), ["40-300-2000", "20-30-40"], [6, 0], id="init container: two containers"),
        pytest.param(spec(300, 300), ["300-600-900"], [29], id="an image named twice counts twice"),
    ],
)  # fmt: skip
def test_upstream(wanted: dict[str, Any], nodes: list[str], expected: list[int]) -> None:
    view = view_of([node_named(name, images=NODES[name]) for name in nodes])

    assert list(scores(ImageLocality(), pod_with(wanted), view).values()) == expected


@pytest.mark.parametrize(("minor", "expected"), [(35, [0, 0]), (36, [12, 0])])
def test_until_136_an_image_volume_is_no_container(minor: int, expected: list[int]) -> None:
    view = view_of([node_named(name, images=NODES[name]) for name in ("300-600-900", "4000-30")])
    view.state.version = KubernetesVersion(1, minor)

    assert list(scores(ImageLocality(), pod_with(spec(30, volume=300)), view).values()) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("root", "root:latest"),
        ("root:tag", "root:tag"),
        ("gcr.io:5000/root", "gcr.io:5000/root:latest"),
        ("root@sha256:0123", "root@sha256:0123"),
        ("", ":latest"),
    ],
)
def test_names_without_a_tag(name: str, expected: str) -> None:
    assert normalized_image_name(name) == expected


def test_absurd_sizes_and_no_containers() -> None:
    huge = NodeImage(("huge:latest",), 2**63 - 1)
    view = view_of([node_named("n", images=[huge, NodeImage(("odd:latest",), -(2**62))])])
    many = [{"name": "c", "image": name} for name in ("huge", "odd") for _ in range(50)]

    assert scores(ImageLocality(), pod_with({"containers": many}), view) == {"n": 100}
    assert scores(ImageLocality(), pod_with({"containers": []}), view) == {"n": 0}
