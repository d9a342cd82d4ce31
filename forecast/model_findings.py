"""What the training run found not to add up: published with the model that it made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

INFO = "findings"
"""Where a model keeps them, in `PeakModel.info`."""


@dataclass(frozen=True, slots=True)
class ModelFinding:
    """finding: its kind, a stable name; what, what_to_do: sentences without a full stop; what_to_do may be empty."""

    finding: str
    what: str
    what_to_do: str

    def to_json(self) -> dict[str, str]:
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.finding}: " + "; ".join(filter(None, (self.what, self.what_to_do)))


def findings_of(info: Mapping[str, Any]) -> tuple[ModelFinding, ...]:
    """Those that a model was published with; entries of another form are left out."""
    known = info.get(INFO)
    return tuple(
        ModelFinding(one["finding"], one["what"], one["what_to_do"])
        for one in (known if isinstance(known, list) else ())
        if isinstance(one, Mapping) and all(isinstance(one.get(name), str) for name in ModelFinding.__slots__)
    )


def findings_info(findings: Sequence[ModelFinding]) -> dict[str, Any]:
    """The entry for `PeakModel.info`."""
    return {INFO: [one.to_json() for one in findings]}
