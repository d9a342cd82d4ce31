"""What all groups of settings have in common, and the types of their fields."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from forecast.durations import DURATION_EXAMPLES, duration_seconds

__all__ = ["Country", "Duration", "SettingGroup", "check_names"]


class SettingGroup(BaseModel):
    """Frozen; a key that it does not have is refused."""

    # What was given may be a secret under a wrong name, and a traceback shows the error.
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)


def _undo_the_norway_problem(value: Any) -> Any:
    """YAML 1.1 reads the country code NO, unquoted, as the truth value false."""
    return "NO" if value is False else value


def _seconds(value: Any) -> Any:
    """Seconds of "200ms", "30s", "5m", "1h30m" or a number."""
    if not isinstance(value, str):
        return value
    seconds = duration_seconds(value)
    if seconds is None:
        raise ValueError(f"write a duration such as {DURATION_EXAMPLES}")
    return seconds


Country = Annotated[str, BeforeValidator(_undo_the_norway_problem)]
Duration = Annotated[float, BeforeValidator(_seconds)]
"""Seconds, written as a number or in Prometheus' way."""


def check_names(kind: str, names: list[str]) -> None:
    """Raises ValueError if two of a list have the same name."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"each {kind} has a name of its own, {twice[0]!r} is given twice")
