"""The admission policy that docs/operate/security.md shows, on a real API server."""

from __future__ import annotations

import yaml

from testing.processes.scorer_process import ROOT
from testing.processes.webhook_process import Api, Refused, plain_pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually


def test_the_admission_policy_of_the_docs_refuses_the_annotation_it_names(plane: ControlPlane) -> None:
    page = (ROOT / "docs" / "operate" / "security.md").read_text()
    text = "apiVersion" + page.partition("```yaml\napiVersion")[2].partition("```")[0]
    group = "/apis/admissionregistration.k8s.io/v1"
    marked, plain = plain_pod("marked", "shop"), plain_pod("plain", "shop")
    marked["metadata"]["annotations"] = {"forecast-scheduler.io/virtual-request": '{"cpu": "1m"}'}
    with Api(plane) as api:
        policy, binding = yaml.safe_load_all(text)
        api.request("POST", f"{group}/validatingadmissionpolicies", policy)
        api.request("POST", f"{group}/validatingadmissionpolicybindings", binding)

        def refused() -> bool:
            try:
                api.create(marked, "?dryRun=All")
            except Refused as error:
                return "virtual-request is for operators" in error.message
            return False

        assert eventually(refused)
        api.create(plain, "?dryRun=All")
        assert api.warnings == []
