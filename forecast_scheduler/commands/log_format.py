"""How log records look on standard error: as text with fields, or as one JSON object a line."""

from __future__ import annotations

import json
import logging
import math
from contextvars import ContextVar
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from base.redaction import redacted

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LogFormat(StrEnum):
    """text: for people; json: for log collectors."""

    TEXT = "text"
    JSON = "json"


log_format_option: ContextVar[LogFormat | None] = ContextVar("log_format_option", default=None)
"""`--log-format`, which stands before the command; None = as in the settings."""


def formatter_of(log_format: LogFormat, *, with_time: bool) -> logging.Formatter:
    """Return the formatter. with_time: whether text lines begin with the time; JSON always has it."""
    if log_format is LogFormat.JSON:
        return _Json()
    when = "%(asctime)s " if with_time else ""
    return _WithFields(f"{when}%(levelname)s %(name)s: %(message)s")


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """Facts of a record, passed as `extra`."""
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


class _WithFields(logging.Formatter):
    """Appends the fields of a record as key=value; facts are passed as fields, not worked into the text.

    Secrets in URLs and headers are hidden in every record, also in those of libraries.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        fields = [f"{key}={value}" for key, value in _fields(record).items()]
        return " ".join([super().formatMessage(record), *fields])

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))


class _Json(logging.Formatter):
    """The same facts as JSON: time, level, logger, message, the fields, and the traceback as `exception`."""

    def format(self, record: logging.LogRecord) -> str:
        document = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        # Fields never take the place of these four.
        document |= {key: value for key, value in _fields(record).items() if key not in document}
        if record.exc_info:
            document["exception"] = self.formatException(record.exc_info)
        return json.dumps({key: _hidden(value) for key, value in document.items()}, allow_nan=False)


def _hidden(value: Any) -> int | float | str | None:
    """Return what JSON has for the value: a finite number as it is, all else, also NaN, as text without secrets.

    Secrets are hidden before the text is encoded: the escapes of JSON would end a URL too early or late.
    """
    if value is None or isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return redacted(str(value))
