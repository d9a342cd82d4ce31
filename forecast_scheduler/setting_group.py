"""What all groups of settings have in common, and the types of their fields."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

__all__ = ["Country", "Duration", "SettingGroup"]

_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}


class SettingGroup(BaseModel):
    """Frozen; a key that it does not have is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def _undo_the_norway_problem(value: Any) -> Any:
    """YAML 1.1 reads the country code NO, unquoted, as the truth value false."""
    return "NO" if value is False else value


def _seconds(value: Any) -> Any:
    """Seconds of "200ms", "30s", "5m", "1h30m" or a number."""
    if not isinstance(value, str) or re.fullmatch(r"\d+(\.\d+)?", value):
        return value
    if not re.fullmatch(r"(\d+(ms|[smhd]))+", value):
        raise ValueError("write a duration such as 200ms, 30s, 5m or 1h30m")
    return sum(int(number) * _SECONDS[unit] for number, unit in re.findall(r"(\d+)(ms|[smhd])", value))


Country = Annotated[str, BeforeValidator(_undo_the_norway_problem)]
Duration = Annotated[float, BeforeValidator(_seconds)]
"""Seconds, written as a number or in Prometheus' way."""
