"""The structures of an AdmissionReview, from staging/src/k8s.io/api/admission/v1/types.go.

Only what is read is named; other fields are skipped. The object stays JSON until it is known to be a new pod.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

NOTHING = Raw(b"null")

Text = Annotated[str, Meta(max_length=1024)]


def _nothing() -> Raw:
    return NOTHING


class GroupVersionKind(Struct, gc=False):
    """What the object is."""

    kind: Text = ""
    group: Text = ""
    version: Text = ""


class AdmissionRequest(Struct, rename="camel", gc=False):
    """What is asked. uid: of the request; object: as it would be stored now; dry_run: it will not be."""

    uid: Annotated[str, Meta(min_length=1, max_length=1024)]
    kind: GroupVersionKind = field(default_factory=GroupVersionKind)
    sub_resource: Text | None = None
    namespace: Text | None = None
    operation: Text = ""
    object: Raw = field(default_factory=_nothing)
    dry_run: bool | None = None


class AdmissionReview(Struct, rename="camel", gc=False):
    """Body of POST /mutate."""

    api_version: Literal["admission.k8s.io/v1"]
    kind: Literal["AdmissionReview"]
    request: AdmissionRequest


class ReviewedPodJson(TypedDict, total=False):
    """An object that should be a pod."""

    metadata: Raw
    spec: Raw


class PodMetadata(TypedDict, total=False):
    """What templates look at. Nothing is refused here: a pod that cannot be understood stays as it is."""

    name: Any
    generateName: Any
    labels: Any
    annotations: Any
    ownerReferences: Any


class ReviewedPodSpec(TypedDict, total=False):
    """What templates and the gate of the advisor look at or change."""

    nodeName: Any
    nodeSelector: Any
    affinity: Any
    schedulerName: Any
    schedulingGates: Any
    hostNetwork: Any


class AddOrReplace(Struct, tag_field="op", tag="add", gc=False):
    """Operation of a JSON patch (RFC 6902): a member that is there already is replaced."""

    path: str
    value: Any


class Remove(Struct, tag_field="op", tag="remove", gc=False):
    """Operation of a JSON patch: the member must be there."""

    path: str


class AdmissionResponse(Struct, rename="camel", omit_defaults=True, gc=False):
    """What is answered; patch is a JSON patch, as Base64."""

    uid: str
    allowed: bool
    patch: bytes | UnsetType = UNSET
    patch_type: Literal["JSONPatch"] | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET


class AdmissionReviewAnswer(Struct, rename="camel", gc=False):
    """Answer of POST /mutate."""

    response: AdmissionResponse
    api_version: Literal["admission.k8s.io/v1"] = "admission.k8s.io/v1"
    kind: Literal["AdmissionReview"] = "AdmissionReview"


class WebhookErrorBody(Struct, gc=False):
    """Any answer but 200: one sentence with the way out."""

    error: str
