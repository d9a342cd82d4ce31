"""What `capacity` promised that fewer nodes save, kept beside the forecasts as they were issued.

    <store>/issued/saving-<made_at>.json

One file for each promise: what is known afterwards must not change what was said before. Files are kept; there are as
many as a person has asked for.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Final

from base.object_store import ObjectStore

logger = logging.getLogger(__name__)

_DIRECTORY: Final = "issued"
_NAME: Final = re.compile(r"saving-\d{8}T\d{6}Z\.json")


@dataclass(frozen=True, slots=True)
class PromisedSaving:
    """
    made_at         : aware, in UTC
    currency        : of all sums
    groups          : nodes of each group before, which the promise compares with
    nodes           : that the forecast was found to need
    saved_per_month : by the prices of then
    hot_share       : of node half hours, on these nodes; target: that it may have at most
    sources         : of prices, and how many nodes have theirs from it
    """

    made_at: datetime
    currency: str
    groups: Mapping[str, int]
    nodes: int
    saved_per_month: float
    hot_share: float
    target: float
    sources: Mapping[str, int]

    @property
    def nodes_before(self) -> int:
        """Nodes of all groups."""
        return sum(self.groups.values())


def keep_promise(store: ObjectStore, promise: PromisedSaving) -> str:
    """Write it; returns the file's name. Raises StoreError."""
    name = f"{_DIRECTORY}/saving-{promise.made_at:%Y%m%dT%H%M%SZ}.json"
    content = asdict(promise) | {"made_at": promise.made_at.isoformat()}
    store.put(name, json.dumps(content, indent=2).encode())
    return name


def last_promise(store: ObjectStore) -> PromisedSaving | None:
    """The promise that was made last; None = there is none. A damaged file is left out with a warning.

    Raises StoreError.
    """
    for name in sorted(filter(_NAME.fullmatch, store.files(_DIRECTORY)), reverse=True):
        try:
            promise = PromisedSaving(**json.loads(store.get(f"{_DIRECTORY}/{name}")))
            made_at = datetime.fromisoformat(str(promise.made_at))
            if made_at.tzinfo is None or min(promise.nodes, promise.nodes_before) < 1:
                raise ValueError("it is no promise")
            return replace(promise, made_at=made_at)
        except (ValueError, TypeError, AttributeError, FileNotFoundError) as error:
            logger.warning("a promised saving is left out", extra={"file": name, "error": " ".join(str(error).split())})
    return None
