"""What the typed structures of API objects are built from: a base class and plain types with their limits."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta, Raw

Time = Annotated[datetime, Meta(tz=True)]
Text = Annotated[str, Meta(max_length=16384)]
Name = Annotated[str, Meta(min_length=1, max_length=316, pattern="^[^/]*$")]
Int32 = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
StringMap = dict[str, str | None]
Amount = str | int | float | None
Amounts = dict[str, str | int | float]

NOTHING = Raw(b"null")


class Wire(msgspec.Struct, rename="camel", gc=False):
    """Unknown fields are skipped; Python names are the JSON names in snake case."""
