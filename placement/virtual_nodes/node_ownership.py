"""Whose node is it: the cluster's own, or a provider's? Decided from the node's labels and taints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kube.objects.objects import NodeInfo
from placement.virtual_nodes.options import OTHER, PROVIDER_TAINT, VIRTUAL_LABEL, Provider, ServerlessOptions

REAL: Final = -1


def is_labelled_virtual(node: NodeInfo) -> bool:
    """Whether its labels say that it is a provider's. https://virtual-kubelet.io/docs/setup/"""
    key, value = VIRTUAL_LABEL
    return node.labels.get(key) == value


class Claims:
    """providers: those of the options and OTHER; what is said of a node is an index among them, or REAL."""

    def __init__(self, options: ServerlessOptions) -> None:
        self.providers: Final[Sequence[Provider]] = options.all_providers()
        self._taints = frozenset(options.taints)
        self._other = next(i for i, one in enumerate(self.providers) if one.name == OTHER)

    def of(self, node: NodeInfo | None) -> int:
        """Return the owner of a node; a node that does not exist (any more) has none."""
        if node is None:
            return REAL
        values = {taint.value for taint in node.taints if taint.key == PROVIDER_TAINT}
        for number, provider in enumerate(self.providers):
            if provider.labels:
                if all(node.labels.get(key) == value for key, value in provider.labels.items()):
                    return number
            elif provider.name in values:
                return number
        is_virtual = is_labelled_virtual(node) or any(taint.key in self._taints for taint in node.taints)
        return self._other if is_virtual else REAL
