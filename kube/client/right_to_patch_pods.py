"""May this process remove gates? Without that right none leads, and none holds pods.

SelfSubjectAccessReview of authorization.k8s.io/v1, which every account may create (ClusterRole system:basic-user).
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec
from kubernetes.client import ApiClient

from kube.client.kubernetes_client import send
from kube.failure_notice import FailureNotice

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 5.0
_PATH: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_REQUEST_SECONDS: Final = 2.0
_BODY: Final = msgspec.json.encode(
    {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "patch", "version": "v1", "resource": "pods"}},
    }
)


class RightToPatchPods:
    """`look` is to be called every LOOK_SECONDS by one thread; `is_granted` may be asked by any. Not granted at first.

    Where the API server does not say, what it said last counts.
    without : what this process does not do without the right, for the log
    """

    def __init__(self, api: ApiClient, without: str) -> None:
        self._api, self._is_granted = api, False
        self._notice = FailureNotice(
            logger, f"{without}: it may not remove gates (grant patch on pods)", "it may remove gates again"
        )
        self._unanswered = FailureNotice(
            logger, "the API server does not say whether gates may be removed (create selfsubjectaccessreviews)"
        )

    def is_granted(self) -> bool:
        """Return whether the API server said so when it was last asked."""
        return self._is_granted

    def look(self) -> None:
        """Ask the API server."""
        answer = send(self._api, "POST", _PATH, _BODY, seconds=_REQUEST_SECONDS)
        if not answer.is_success:
            self._unanswered.failed(answer.text)
            return
        try:
            status = msgspec.json.decode(answer.body, type=_Review).status
        except msgspec.DecodeError as error:
            self._unanswered.failed(str(error))
            return
        self._unanswered.succeeded()
        self._is_granted = status.allowed
        if status.allowed:
            self._notice.succeeded()
        else:
            self._notice.failed(status.reason or "patch on pods is denied")


class _Status(msgspec.Struct):
    allowed: bool = False
    reason: str | None = None


class _Review(msgspec.Struct):
    status: _Status
