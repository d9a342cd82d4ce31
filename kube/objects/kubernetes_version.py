"""Which Kubernetes the API server is, and which of its rules changed between the versions that ours are compared with.

The version of the API server decides for all rules. kube-scheduler is of the same minor version or one behind
(https://kubernetes.io/releases/version-skew-policy/), and its requests rule is the one that its nodes' usage is
counted by. A kubelet may be three behind: its own admission then counts as its version does.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec


class KubernetesVersion(NamedTuple):
    """A minor version. Each property is a rule of kube-scheduler, and says where it stands there."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @property
    def compares_whole_pods(self) -> bool:
        """While a pod is resized, it requests the greatest of its totals: asked for, given, set aside.

        Before, containers were compared one by one, and what an init container was given did not count unless it was a
        sidecar (AggregateContainerRequests of component-helpers/resource/helpers.go).
        """
        return self >= (1, 37)

    @property
    def keeps_namespace_selectors(self) -> bool:
        """A namespace selector of a pod's own term means the namespaces that it matches, without exception.

        Before, one that matches a namespace without labels (NotIn, DoesNotExist) meant every namespace
        (https://github.com/kubernetes/kubernetes/issues/141526).
        """
        return self >= (1, 37)

    @property
    def counts_image_volumes(self) -> bool:
        """ImageLocality divides by the number of containers and image volumes; before, of containers alone."""
        return self >= (1, 37)

    @property
    def sums_image_volumes(self) -> bool:
        """ImageLocality adds up the images of image volumes, too; before, of containers alone."""
        return self >= (1, 36)

    @property
    def scores_change_of_balance(self) -> bool:
        """BalancedAllocation scores what the pod does to the balance; before, the balance with the pod."""
        return self >= (1, 36)

    @property
    def asks_declared_features(self) -> bool:
        """The filter NodeDeclaredFeatures runs; before, its gate is alpha and off."""
        return self >= (1, 36)

    @property
    def counts_empty_selectors(self) -> bool:
        """PodTopologySpread counts all pods for an empty selector; before, none (countPodsMatchSelector)."""
        return self >= (1, 38)


COMPARED: Final = tuple(KubernetesVersion(1, minor) for minor in (35, 36, 37, 38))
"""Versions whose kube-scheduler the tests compare ours with (tests/differential), the oldest first."""

NEWEST: Final = KubernetesVersion(1, 37)
"""The newest release: what holds where no API server says its version, as in files and for pods that a user posts."""


class _VersionJson(msgspec.Struct):
    major: str
    minor: str


_decoder = msgspec.json.Decoder(_VersionJson)
_LEADING_NUMBER: Final = re.compile(r"\d{1,9}(?!\d)")


def decode_version(body: bytes) -> KubernetesVersion | None:
    """What GET /version answers; None = it is no version. Some providers write the minor as "37+"."""
    try:
        found = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    numbers = [_LEADING_NUMBER.match(text) for text in (found.major, found.minor)]
    major, minor = (int(one[0]) if one else None for one in numbers)
    return None if major is None or minor is None else KubernetesVersion(major, minor)
