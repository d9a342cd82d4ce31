"""May this process do something? Asked before it is tried, so that no request of ours is refused.

SelfSubjectAccessReview of authorization.k8s.io/v1, which every account may create (ClusterRole system:basic-user).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec
from kubernetes.client import ApiClient

from kube.client.kubernetes_client import send

_PATH: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_REQUEST_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class RightVerdict:
    """is_allowed: None = the API server did not say; why: not allowed, or not said."""

    is_allowed: bool | None
    why: str = ""


class _Status(msgspec.Struct):
    allowed: bool = False
    reason: str | None = None


class _Review(msgspec.Struct):
    status: _Status


def ask_right(api: ApiClient, verb: str, resource: str) -> RightVerdict:
    """Ask whether we may do this to a resource of the core group, such as pods or nodes/proxy, in all namespaces."""
    name, _, subresource = resource.partition("/")
    attributes = {"verb": verb, "version": "v1", "resource": name, "subresource": subresource}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = send(api, "POST", _PATH, msgspec.json.encode(review), seconds=_REQUEST_SECONDS)
    if not answer.is_success:
        return RightVerdict(None, answer.text)
    try:
        status = msgspec.json.decode(answer.body, type=_Review).status
    except msgspec.DecodeError as error:
        return RightVerdict(None, str(error))
    return RightVerdict(status.allowed, status.reason or ("" if status.allowed else f"{verb} on {resource} is denied"))
