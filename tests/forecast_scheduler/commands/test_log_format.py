"""Log lines as text and as JSON: the same facts, secrets hidden in both."""

from __future__ import annotations

import json
import logging
import math
import subprocess
import sys

import numpy as np
import pytest

from forecast_scheduler.commands.log_format import LogFormat, formatter_of


def _record(message: str, *arguments: object, **fields: object) -> logging.LogRecord:
    try:
        raise ValueError("broken")
    except ValueError:
        record = logging.LogRecord("scorer.x", logging.WARNING, "x.py", 1, message, arguments, sys.exc_info())
    vars(record).update(fields)
    return record


def test_secrets_are_hidden_and_every_line_stays_json() -> None:
    record = _record("node %s at https://user:secret@host/x", "n1", why="late", message_id=7)
    text = formatter_of(LogFormat.TEXT, with_time=False).format(record)
    assert text.startswith("WARNING scorer.x: node n1 at https://") and "why=late message_id=7" in text
    document = json.loads(formatter_of(LogFormat.JSON, with_time=False).format(record))
    assert document["message"].startswith("node n1 at https://")
    assert (document["level"], document["logger"], document["why"], document["message_id"]) == (
        "warning", "scorer.x", "late", 7,
    )  # fmt: skip
    assert document["time"].endswith("+00:00") and "ValueError: broken" in document["exception"]
    assert "secret" not in text and "secret" not in json.dumps(document)
    record = _record("x", share=math.nan, most=-math.inf, size=np.float64(0.5), pods=np.int64(3), ready=True, node=None)
    document = json.loads(formatter_of(LogFormat.JSON, with_time=False).format(record), parse_constant=pytest.fail)
    assert (document["share"], document["most"], document["pods"]) == ("nan", "-inf", "3")
    assert (document["size"], document["ready"], document["node"]) == (0.5, True, None)
    record = _record(
        'asked "%s"\n%s', "http://host/x?token=secret", "Authorization: Bearer secretly-1", url="http://u:secret@host"
    )
    line = formatter_of(LogFormat.JSON, with_time=False).format(record)
    assert "secret" not in line and "\n" not in line
    assert json.loads(line)["message"].startswith('asked "http://host/x')


def test_the_option_comes_before_the_command_and_goes_before_the_settings() -> None:
    for arguments, is_json in (((), False), (("--log-format", "json"), True)):
        code = (
            "import logging, sys\n"
            "from forecast_scheduler.commands import models_command\n"
            "from forecast_scheduler.commands.shell import open_shell\n"
            "def shown(*a, **k):\n"
            "    open_shell(None)\n"
            "    logging.getLogger('scorer').warning('hello', extra={'node': 'n1'})\n"
            "    sys.exit(0)\n"
            "from forecast_scheduler import cli\n"
            "cli.app.command('shown')(lambda: shown())\n"
            "cli.app()\n"
        )
        ran = subprocess.run(
            [sys.executable, "-c", code, *arguments, "shown"], capture_output=True, text=True, timeout=60
        )
        line = ran.stderr.strip().splitlines()[-1]
        assert line.startswith("{") is is_json and "hello" in line and "n1" in line, ran.stderr
