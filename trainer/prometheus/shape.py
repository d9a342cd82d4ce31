"""What a shape is, which of them a day needs, and the parts that the queries of several shapes share. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Whole devices only: what is written to a partition, to device-mapper (LVM, LUKS) or to md is counted again on the
# disk below. PromQL anchors regular expressions.
PHYSICAL_DISKS = "(/dev/)?(sd[a-z]+|vd[a-z]+|xvd[a-z]+|nvme[0-9]+n[0-9]+|mmcblk[0-9]+|rbd[0-9]+|dasd[a-z]+)"

# No VLAN (eth0.100), bond, bridge, veth or overlay: their bytes pass a physical interface as well. ens5, enp3s0, eno1,
# enP2p1s0v0 and end0 are names of systemd; env2 and ibmveth those of POWER; wlan0 and wlp2s0 of boards without a cable.
PHYSICAL_INTERFACES = (
    "eth[0-9]+|en[0-9dopsvxPX][a-zA-Z0-9]*|em[0-9]+|p[0-9]+p[0-9]+|ib[0-9]+|ibp[a-z0-9]+|ibmveth[0-9]*|wl[a-z0-9]+"
)

# Ends of pods' interfaces and overlays, as only the host has them: of Calico, Cilium, Flannel, the clouds' networks ...
HOST_ENDS = (
    "veth.*|cni.*|cali.*|tunl.*|docker.*|flannel.*|cbr.*|kube-.*|nodelocaldns|eni[0-9a-f]+|gke[0-9a-f]+|azv[0-9a-f]+|"
    "lxc.*|cilium_.*|vxlan.*|ovn-k8s.*|ovs-system|br-.*|genev_sys.*|antrea.*|weave|vethwe.*|datapath|virbr.*|lxdbr.*"
)

NOT_POD_INTERFACES = f"lo|dummy.*|{HOST_ENDS}"

# cAdvisor labels the cgroup of the whole pod with container="" and the pause container with container="POD"
# (or not at all): their usage is that of the containers once more.
CONTAINERS = 'container!="",container!="POD",pod!="",namespace=~"{namespaces}"'
PODS = 'pod!="",namespace=~"{namespaces}"'
WHOLE_CPU = 'cpu=~"total|"'
ONE_CORE = 'cpu!~"total|"'


@dataclass(frozen=True, slots=True)
class Shape:
    """One entry.

    name  : as the user reads it
    says  : what was found and how it is read, with the place {n} for "12 pods" or "3 nodes"
    there : PromQL, a vector by (namespace, pod) or by (node) of what this shape can measure at an instant
    reads : query of the settings -> template in the manner of trainer.prometheus.queries
    beyond: it measures more of pods that a shape before it measures in part: the larger of the two counts
    larger: what rules of an older release recorded may be a part of it: the larger of the two counts
    alone : it may name nodes in another way than the shapes before it, so that a server cannot tell which it measures
            alone: in a union it counts only where the first shape says nothing at all
    """

    name: str
    says: str
    there: str
    reads: Mapping[str, str]
    beyond: bool = False
    larger: bool = False
    alone: bool = False


def not_read_before(shapes: Sequence[Shape], number: int) -> str:
    """PromQL of the pods that shape `number` measures and none before it, or measures more of."""
    if shapes[number].beyond:
        return shapes[number].there
    before = " or ".join(f"({shape.there})" for shape in shapes[:number] if not shape.beyond)
    return f"({shapes[number].there}) unless ({before})"


def union(shapes: Sequence[Shape], query: str) -> str:
    """One template of all shapes for who cannot look first: rules that a server evaluates, and what is used right now.

    A series of a later shape counts where no earlier one has the same pod or node; "" if no shape reads the query.
    """
    reading = [shape for shape in shapes if query in shape.reads and not shape.beyond]
    if len(reading) == 1:
        return reading[0].reads[query]
    unless = f" unless on () ({shapes[0].there})"
    return " or ".join(f"({shape.reads[query]}){unless if shape.alone else ''}" for shape in reading)


def on_node(vector: str) -> str:
    """Give every series of a node-exporter vector the label node: its own if it has one, else instance without port."""
    return (
        f'label_replace(label_join({vector}, "node_or_instance", ";", "node", "instance"), '
        r'"node", "$1$2", "node_or_instance", "([^;]+);.*|;\\[?(.*?)\\]?(?::[0-9]+)?")'
    )


def both_ways(one: str, other: str, label: str) -> str:
    """Return the union of two vectors, distinguished by a label: `a + b` would drop what only one of them has."""
    return (
        f'label_replace({one}, "direction", "in", "{label}", ".*") '
        f'or label_replace({other}, "direction", "out", "{label}", ".*")'
    )


def bytes_of_nodes(one: str, other: str, label: str, devices: str, more: str = "") -> str:
    """Template of two counters of devices, added up by node."""
    selector = f'{{{label}=~"{devices}"{more}}}[{{window}}]'
    union = both_ways(f"rate({one}{selector})", f"rate({other}{selector})", label)
    return f"sum by (node) (max by (node, {label}, direction) ({on_node(f'({union})')}))"
