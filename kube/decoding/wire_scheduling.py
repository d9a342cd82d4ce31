"""The fields of a pod that say where it may go, as msgspec types (see wire.py)."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from kube.decoding.wire_base import NOTHING, Int32, StringMap, Text, Wire


class PortJson(Wire):
    """ports[] of a container."""

    host_port: Int32 | None = None
    host_ip: Text | None = msgspec.field(name="hostIP", default=None)
    protocol: Text | None = None


class RequirementJson(Wire):
    """An entry of matchExpressions or matchFields."""

    key: Text
    operator: Text
    values: list[Text] | None = None


class LabelSelectorJson(Wire):
    """A label selector."""

    match_labels: StringMap | None = None
    match_expressions: list[RequirementJson] | None = None


class NodeTermJson(Wire):
    """A term of a node selector."""

    match_expressions: list[RequirementJson] | None = None
    match_fields: list[RequirementJson] | None = None


class NodeSelectorJson(Wire):
    """A node selector: required node affinity of a pod or volume."""

    node_selector_terms: list[NodeTermJson] | None = None


class WeightedNodeTermJson(Wire):
    weight: Int32
    preference: NodeTermJson | None = None


class NodeAffinityJson(Wire):
    """affinity.nodeAffinity."""

    required_during_scheduling_ignored_during_execution: NodeSelectorJson | None = None
    preferred_during_scheduling_ignored_during_execution: list[WeightedNodeTermJson] | None = None


class PodTermJson(Wire):
    """A term of pod affinity or anti-affinity."""

    topology_key: Text
    label_selector: LabelSelectorJson | None = None
    namespaces: list[Text] | None = None
    namespace_selector: LabelSelectorJson | None = None
    match_label_keys: list[Text] | None = None
    mismatch_label_keys: list[Text] | None = None


class WeightedPodTermJson(Wire):
    """A preferred term of pod affinity."""

    weight: Int32
    pod_affinity_term: PodTermJson


class PodAffinityJson(Wire):
    """podAffinity and podAntiAffinity."""

    required_during_scheduling_ignored_during_execution: list[PodTermJson] | None = None
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodTermJson] | None = None


class AffinityJson(Wire):
    """spec.affinity of a pod."""

    node_affinity: NodeAffinityJson | None = None
    pod_affinity: PodAffinityJson | None = None
    pod_anti_affinity: PodAffinityJson | None = None


class TolerationJson(Wire):
    """tolerations[]."""

    key: Text | None = None
    operator: Text | None = None
    value: Text | None = None
    effect: Text | None = None


class SpreadJson(Wire):
    """topologySpreadConstraints[]."""

    max_skew: Int32
    topology_key: Text
    when_unsatisfiable: Text = "DoNotSchedule"
    label_selector: LabelSelectorJson | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: Text | None = None
    node_taints_policy: Text | None = None
    match_label_keys: list[Text] | None = None


class ClaimVolumeJson(Wire):
    claim_name: Text


class EphemeralJson(Wire):
    """A volume whose claim is made for the pod."""


class GcePersistentDisk(Wire):
    pd_name: Text
    read_only: bool | None = None


class AwsElasticBlockStore(Wire):
    volume_id: Text = msgspec.field(name="volumeID")


class Iscsi(Wire):
    iqn: Text
    read_only: bool | None = None


class Rbd(Wire):
    image: Text
    monitors: list[Text] | None = None
    pool: Text | None = None
    read_only: bool | None = None


class AzureDisk(Wire):
    disk_uri: Text = msgspec.field(name="diskURI")


class Cinder(Wire):
    volume_id: Text = msgspec.field(name="volumeID")


class PortworxVolume(Wire):
    volume_id: Text = msgspec.field(name="volumeID")


class ImageVolume(Wire):
    reference: Text = ""


class EmptyDirJson(Wire):
    """emptyDir of a volume. medium: "" = the node's disk."""

    medium: Text | None = None


class VolumeJson(Wire):
    """A volume of a pod. Of kinds that come along wherever a pod goes it is only read that they are there."""

    name: Text = ""
    config_map: Raw = NOTHING
    secret: Raw = NOTHING
    empty_dir: Raw = NOTHING
    host_path: Raw = NOTHING
    projected: Raw = NOTHING
    downward_api: Raw = msgspec.field(name="downwardAPI", default=NOTHING)
    persistent_volume_claim: ClaimVolumeJson | None = None
    ephemeral: EphemeralJson | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    iscsi: Iscsi | None = None
    rbd: Rbd | None = None
    azure_disk: AzureDisk | None = None
    cinder: Cinder | None = None
    portworx_volume: PortworxVolume | None = None
    image: ImageVolume | None = None
