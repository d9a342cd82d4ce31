"""Services by kube-scheduler with the extender, GPU pods and jobs by our own loops: the overlay for both.

As it is shipped: its settings, arguments, accounts and rights, and the configuration of kube-scheduler, work on a real
control plane.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from forecast_scheduler.settings.document import Settings
from testing.servers.cluster_objects import Manifest
from testing.servers.kustomize import DEPLOY, built, built_from

OVERLAY: Final = "overlays/extender-and-own-loops"
KUBE_SCHEDULER: Final = DEPLOY / "kube-scheduler"


def _configuration(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((KUBE_SCHEDULER / name).read_text())
    return found


def _arguments(manifests: list[Manifest], part: str) -> list[str]:
    """Of the part's container, without the name of the command and the place of the settings."""
    [container] = [
        one["spec"]["template"]["spec"]["containers"][0]
        for one in manifests
        if one["kind"] == "Deployment" and one["metadata"]["name"] == f"forecast-scheduler-{part}"
    ]
    command, *rest = container["args"]
    assert command == part
    at = rest.index("--config")
    return [*rest[:at], *rest[at + 2 :]]


def _settings(manifests: list[Manifest]) -> dict[str, Any]:
    [settings] = [one["data"]["settings.yaml"] for one in manifests if one["kind"] == "ConfigMap"]
    found: dict[str, Any] = yaml.safe_load(settings)
    return found


def test_both_overlays_in_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError) as error:
        built_from(tmp_path / "both", resources=["overlays/extender", "overlays/own-loops"])
    shown = "may not add resource with an already registered id: Namespace.v1.[noGrp]/forecast-scheduler.[noNs]"
    assert shown in str(error.value)


def test_services_are_left_to_kube_scheduler_and_no_node_is_of_both() -> None:
    manifests = built(OVERLAY)
    assert _arguments(manifests, "schedule") == ["--profile", "gpu,job"]
    settings = Settings.model_validate(_settings(manifests))
    assert settings.extender.domain not in {settings.schedule.domain, *settings.schedule.share_nodes}


def test_kube_scheduler_has_the_extender_of_one_and_the_profiles_of_the_other_configuration() -> None:
    both = _configuration("extender-beside-own-loops.yaml")
    assert both == _configuration("extender-in-cluster.yaml") | {
        "profiles": _configuration("beside-own-loops.yaml")["profiles"]
    }
    named = {one["schedulerName"] for one in both["profiles"]}
    assert named == {*Settings().extender.scheduler_names, *Settings().extender.daemon_schedulers}
