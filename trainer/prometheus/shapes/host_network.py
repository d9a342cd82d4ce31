"""Pods on the host network, where kube-state-metrics does not say (before 2.0 it had no label host_network).

Such a pod has the address of its node, and the interfaces of its node: ends of other pods' interfaces and overlays.
"""

from __future__ import annotations

from typing import Final

# Not docker0, veth and bridges: a pod that runs containers of its own has these, too.
_ONLY_HOSTS_HAVE: Final = (
    "cni[0-9]+|cali.*|flannel.*|cbr0|kube-ipvs0|kube-bridge|nodelocaldns|eni[0-9a-f]+|gke[0-9a-f]+|azv[0-9a-f]+|"
    "lxc[0-9a-f]+|cilium_.*|vxlan.calico|ovn-k8s.*|genev_sys.*|antrea.*"
)
_POD = 'host_network="",namespace=~"{namespaces}"'


def _address(label: str) -> str:
    pods = f'last_over_time(kube_pod_info{{{_POD},{label}!=""}}[{{day}}])'
    return f'label_replace({pods}, "address", "$1", "{label}", "(.+)")'


ON_HOST_NETWORK: Final = (
    f"group by (namespace, pod) ({_address('pod_ip')} and on (namespace, pod, address) {_address('host_ip')}) or "
    "group by (namespace, pod) (last_over_time(container_network_receive_bytes_total"
    f'{{pod!="",namespace=~"{{namespaces}}",interface=~"{_ONLY_HOSTS_HAVE}"}}[{{day}}]))'
)
"""Vector by (namespace, pod)."""
