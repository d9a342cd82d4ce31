"""Names of machines as metrics and Kubernetes have them: addresses, host names, with and without a domain. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

_ADDRESS = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-fA-F:]*:[0-9a-fA-F:.]+")


def is_address(name: str) -> bool:
    """Whether a name is an address of IPv4 or IPv6."""
    return _ADDRESS.fullmatch(name) is not None


def without_domain(names: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """Which known host name each name means, compared by the first label alone and regardless of case.

    Only where that leaves one name and one known name: node-1.eu and node-1.us are two machines.
    """
    ours, theirs = _by_first_label(names), _by_first_label(known)
    return {
        mine[0]: theirs[label][0] for label, mine in ours.items() if len(mine) == 1 and len(theirs.get(label, ())) == 1
    }


def _by_first_label(names: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        if not is_address(name):
            found[name.split(".", 1)[0].lower()].append(name)
    return found
