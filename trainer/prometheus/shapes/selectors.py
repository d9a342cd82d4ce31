"""Parts that the queries of several shapes share: which devices count, how a node is named, both directions at once."""

from __future__ import annotations

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
