"""May this process remove gates? Without that right none leads, and none holds pods."""

from __future__ import annotations

import logging
from typing import Final

from kubernetes.client import ApiClient

from kube.client.access_review import ask_right
from kube.failure_notice import FailureNotice

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 5.0


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
        verdict = ask_right(self._api, "patch", "pods")
        if verdict.is_allowed is None:
            self._unanswered.failed(verdict.why)
            return
        self._unanswered.succeeded()
        self._is_granted = verdict.is_allowed
        if verdict.is_allowed:
            self._notice.succeeded()
        else:
            self._notice.failed(verdict.why)
