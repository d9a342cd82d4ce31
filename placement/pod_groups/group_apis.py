"""The APIs that have PodGroups: ours (of scheduler-plugins) and that of Kubernetes itself. One machinery serves both.

Kubernetes serves its PodGroups in several versions, which hold the same objects; the first that is served is read.

A pod is in a native group by `spec.schedulingGroup.podGroupName`, in one of ours by its label (labels.py). Groups of
one name in one namespace never mix, since the key of a native group names its API.

https://github.com/kubernetes/enhancements/tree/master/keps/sig-scheduling/4671-gang-scheduling
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class GroupApi:
    """
    version       : group and version of the API
    suffix        : of the keys of its groups; no name in Kubernetes has a space
    condition     : type of the condition that says whether a group is placed
    where_missing : how a cluster gets this API
    """

    version: str
    suffix: str
    condition: str
    where_missing: str

    @property
    def path(self) -> str:
        """Below which its resources are."""
        return f"/apis/{self.version}"

    @property
    def is_native(self) -> bool:
        """Whether it is of Kubernetes itself, in any version."""
        return bool(self.suffix)

    @property
    def group(self) -> str:
        """Name of the API group."""
        return self.version.partition("/")[0]


OURS: Final = GroupApi(
    "scheduling.x-k8s.io/v1alpha1",
    "",
    "Scheduled",
    "install its definition with kubectl apply --server-side -k deploy/crds/podgroups",
)
NATIVE: Final = GroupApi(
    "scheduling.k8s.io/v1",
    " of scheduling.k8s.io",
    "PodGroupInitiallyScheduled",
    "from 1.37 it does with the feature gate GenericWorkload and --runtime-config=scheduling.k8s.io/v1beta1=true",
)
NATIVE_VERSIONS: Final = (
    NATIVE,
    *(replace(NATIVE, version=f"scheduling.k8s.io/{version}") for version in ("v1beta1", "v1alpha3")),
)
"""1.37 serves v1beta1 and, with the same fields, v1alpha3; so does 1.38.0-beta.0, whose v1 has the building blocks of
PodGroups alone. 1.36 has an older v1alpha2, which is not read."""

APIS: Final = (OURS, NATIVE)


def group_key(namespace: str, name: str, api: GroupApi = OURS) -> str:
    """ "namespace/name", of native groups with the API after it."""
    return f"{namespace}/{name}{api.suffix}"


def api_of(key: str) -> GroupApi:
    """Which API the group of this key is of."""
    return NATIVE if key.endswith(NATIVE.suffix) else OURS


def pod_groups_path(namespace: str, api: GroupApi = OURS) -> str:
    """Of the PodGroups of a namespace."""
    return f"{api.path}/namespaces/{quote(namespace, safe='')}/podgroups"


class ApiState(Enum):
    """What the watch of an API has found. ABSENT: the API server does not serve it."""

    NOT_READ = "not read"
    ABSENT = "absent"
    READ = "read"
