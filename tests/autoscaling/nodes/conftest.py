"""A namespace of buffers on a real API server, with CapacityBuffers or without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually
from tests.autoscaling.conftest import LONG, Api

NAMESPACE: Final = "forecast-scheduler-buffers"
CAPACITY_BUFFERS: Final = f"/apis/autoscaling.x-k8s.io/v1beta1/namespaces/{NAMESPACE}/capacitybuffers"
DEPLOYMENTS: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
POD_TEMPLATES: Final = f"/api/v1/namespaces/{NAMESPACE}/podtemplates"
_DEFINITION: Final = Path(__file__).parent / "capacitybuffers.yaml"


@pytest.fixture(scope="module")
def api(plane: ControlPlane) -> Iterator[Api]:
    made = Api(plane.kubeconfig)
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    made.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "labels": labels}})
    yield made
    made.session.stop()


@pytest.fixture(scope="module")
def with_capacity_buffers(api: Api) -> None:
    definition = yaml.safe_load(_DEFINITION.read_text())
    api.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)

    def is_served() -> bool:
        answer = api.session.submit(api.session.request("GET", CAPACITY_BUFFERS, None, seconds=30)).result(LONG)
        return answer.is_success

    assert eventually(is_served)
