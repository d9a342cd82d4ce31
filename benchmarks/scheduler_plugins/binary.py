"""kube-scheduler with CapacityScheduling of scheduler-plugins: built from go/go.mod, which pins the version."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from testing.servers.program_cache import program_of

_MODULE: Final = Path(__file__).with_name("go")
_OTHERWISE: Final = "put scheduler-plugins on PATH: kube-scheduler with the plugin CapacityScheduling"
_PLUGIN: Final = "CapacityScheduling"


def scheduler_plugins() -> Path:
    """Return the program; the first call on a machine without one builds it."""
    return program_of(_MODULE, "scheduler-plugins", ".", otherwise=_OTHERWISE)


def capacity_scheduling() -> dict[str, Any]:
    """Return the profile that heeds ElasticQuotas: manifests/capacityscheduling/scheduler-config.yaml."""
    enabled = [{"name": _PLUGIN}]
    return {
        "schedulerName": "default-scheduler",
        "plugins": {
            "multiPoint": {"enabled": enabled},
            "postFilter": {"enabled": enabled, "disabled": [{"name": "*"}]},
        },
    }
