"""What is asked of the API server for volumes: paths and bodies of merge patches.

The resourceVersion goes along: who has changed the object meanwhile wins, and the pod is placed anew.

Source: bindAPIUpdate in framework/plugins/volumebinding/binder.go; GetBindVolumeToClaim in
component-helpers/storage/volume/pv_helpers.go.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import orjson

from scheduler.volumes.choice import ChosenNode, ChosenVolume


def node_patch(chosen: ChosenNode, node: str) -> tuple[str, bytes]:
    """Path and body: a volume is to be made for the claim, on that node."""
    claim = chosen.claim
    path = f"/api/v1/namespaces/{quote(claim.namespace, safe='')}/persistentvolumeclaims/{quote(claim.name, safe='')}"
    metadata = _unchanged(claim.resource_version) | {
        "uid": claim.uid,
        "annotations": {"volume.kubernetes.io/selected-node": node},
    }
    return path, orjson.dumps({"metadata": metadata})


def reference_patch(chosen: ChosenVolume) -> tuple[str, bytes]:
    """Path and body: the volume is for the claim; the volume controller does the rest."""
    claim, volume = chosen.claim, chosen.volume
    metadata = _unchanged(volume.resource_version)
    if volume.claim is None:  # else somebody kept it for the claim, and it stays so when the claim goes
        metadata["annotations"] = {"pv.kubernetes.io/bound-by-controller": "yes"}
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
        "resourceVersion": claim.resource_version or None,
    }
    body = {"metadata": metadata, "spec": {"claimRef": reference}}
    return f"/api/v1/persistentvolumes/{quote(volume.name, safe='')}", orjson.dumps(body)


def version_in(body: bytes) -> str:
    """resourceVersion of an object that the API server returned; '' = not to be read."""
    try:
        return str(orjson.loads(body)["metadata"]["resourceVersion"])
    except (ValueError, KeyError, TypeError):
        return ""


def _unchanged(resource_version: str) -> dict[str, Any]:
    return {"resourceVersion": resource_version} if resource_version else {}
