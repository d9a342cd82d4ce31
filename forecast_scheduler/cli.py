"""The command `forecast-scheduler`: which commands there are, and what becomes of an error.

    exit status   meaning
    0             success
    2             bad usage or bad input; one line says what is wrong and how to mend it
    130           interrupted
    1             anything else; --verbose shows the traceback. `status`: the installation is degraded
    3             `status`: not everything could be read, and nothing that was is degraded

Each command is one file in `commands`; the libraries it needs are imported when it runs, so that `--help` is quick.
"""

from __future__ import annotations

import errno
import gc
import logging
import os
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, Final, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from base.errors import ForecastError, InputError, PublishError, StoreError
from base.redaction import redacted
from forecast_scheduler.commands.advise.advise_command import advise
from forecast_scheduler.commands.autoscale_command import autoscale
from forecast_scheduler.commands.backtest_command import backtest
from forecast_scheduler.commands.capacity_command import capacity
from forecast_scheduler.commands.demo.demo_command import demo
from forecast_scheduler.commands.doctor_command import doctor
from forecast_scheduler.commands.explain.command import explain
from forecast_scheduler.commands.extender_command import extender
from forecast_scheduler.commands.jobs_command import jobs
from forecast_scheduler.commands.log_format import LogFormat, log_format_option
from forecast_scheduler.commands.look.look_command import look
from forecast_scheduler.commands.models_command import models
from forecast_scheduler.commands.nodes import node, nodes
from forecast_scheduler.commands.output_format import OutputFormat, output_format, reporting
from forecast_scheduler.commands.plugins import plugins
from forecast_scheduler.commands.policy.policy_command import policy
from forecast_scheduler.commands.rebalance.rebalance_command import rebalance
from forecast_scheduler.commands.relieve.relieve_command import relieve
from forecast_scheduler.commands.render.render_command import render
from forecast_scheduler.commands.replay_command import replay
from forecast_scheduler.commands.report_command import report
from forecast_scheduler.commands.requests.requests_command import requests
from forecast_scheduler.commands.rules_command import rules
from forecast_scheduler.commands.schedule.schedule_command import schedule
from forecast_scheduler.commands.scorer_command import scorer
from forecast_scheduler.commands.settings_command import settings
from forecast_scheduler.commands.status.command import status
from forecast_scheduler.commands.tenants_command import tenants
from forecast_scheduler.commands.tide_command import tide
from forecast_scheduler.commands.train_command import train
from forecast_scheduler.commands.webhook_command import webhook

logger = logging.getLogger(__name__)

_COLLECT_AFTER: Final = 10_000
"""New objects, instead of 700. Long-lived services freeze what they have once they are ready."""

SUCCESS, FAILURE, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

# Errors of the machine that its user can mend: they are input, not our failure.
_MENDABLE = {
    errno.ENOSPC: "make room on that disk",
    errno.EDQUOT: "make room in that quota",
    errno.EACCES: "give yourself permission or choose another place",
    errno.EPERM: "give yourself permission or choose another place",
    errno.ENOENT: "choose a place that exists",
    errno.ENOTDIR: "choose a directory",
    errno.EROFS: "choose a place that can be written",
}

app = typer.Typer(
    name="forecast-scheduler",
    epilog="Try it without a cluster: forecast-scheduler demo",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # boxes leave 18 of 80 columns for what an option does
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"forecast-scheduler {version('forecast-scheduler')}")
        raise typer.Exit


@app.callback()
def options_of_all(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    log_format: Annotated[
        LogFormat | None,
        typer.Option(
            "--log-format", help="Log lines for people or for log collectors. Default: text, or the settings."
        ),
    ] = None,
) -> None:
    """Forecast what every Kubernetes service will use, and place pods where tonight's peak stays lowest."""
    log_format_option.set(log_format)
    output_format.set(OutputFormat.TABLE)  # of commands without --output


for _command in (
    reporting(look),
    demo,
    reporting(train),
    reporting(doctor),
    reporting(backtest),
    reporting(replay),
    reporting(capacity),
    reporting(requests),
    reporting(report),
    scorer,
    advise,
    reporting(rebalance),
    autoscale,
    extender,
    reporting(schedule),
    reporting(nodes),
    reporting(node),
    reporting(relieve),
    reporting(explain),
    reporting(status),
    reporting(jobs),
    reporting(tide),
    reporting(plugins),
    reporting(tenants),
    rules,
    render,
    webhook,
):
    # The whole first paragraph in the list of commands, where typer would cut it after 45 characters.
    app.command(short_help=" ".join((_command.__doc__ or "").partition("\n\n")[0].split()))(_command)
app.add_typer(models, name="models")
app.add_typer(policy, name="policy")
app.add_typer(settings, name="settings")


def main() -> None:
    """Run the command line of this process (`__main__` is the entry point)."""
    # An evicted pod gets SIGTERM: it then gives its lease back, as after Ctrl-C.
    signal.signal(signal.SIGTERM, _interrupt)
    # Imports make a million objects that stay: looking through them again and again is a tenth of every start.
    gc.set_threshold(_COLLECT_AFTER)
    sys.exit(run(sys.argv[1:]))


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return the exit status; every error has become one line on stderr."""
    command = typer.main.get_command(app)
    _help_when_bare(command)
    try:
        status = command.main(args=list(arguments), prog_name="forecast-scheduler", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): no message can reach him, not even at interpreter exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    except Exception as error:
        return _status_of(error)
    if status == INTERRUPTED:  # typer, too, turns Ctrl-C into this status
        return _fail(INTERRUPTED, "interrupted")
    return status if isinstance(status, int) else SUCCESS


def _help_when_bare(command: object) -> None:
    """Let commands that need arguments, and groups that need a command, print their help when called without any."""
    if isinstance(command, TyperGroup):
        command.no_args_is_help = not command.invoke_without_command
        for inner in command.commands.values():
            _help_when_bare(inner)
    elif isinstance(command, TyperCommand):
        command.no_args_is_help = any(parameter.required for parameter in command.params)


def _status_of(error: Exception) -> int:
    """Say what went wrong and return the exit status."""
    logger.debug("where it happened", exc_info=error)
    if isinstance(error, typer.TyperException):
        return _usage_error(error)
    if isinstance(error, InputError | PublishError):
        return _fail(BAD_INPUT, str(error))
    if isinstance(error, StoreError):
        return _fail(BAD_INPUT, f"{error}: check that this place can be reached, has room and may be written")
    if isinstance(error, ForecastError):
        return _fail(FAILURE, str(error))
    if isinstance(error, OSError) and error.errno in _MENDABLE:
        where = f" {error.filename}" if error.filename else ""
        return _fail(BAD_INPUT, f"cannot use{where}: {error.strerror}: {_MENDABLE[error.errno]}")
    if isinstance(error, MemoryError):
        return _fail(FAILURE, "out of memory: run it where more is free, or on a shorter history")
    return _fail(
        FAILURE, f"unexpected {type(error).__name__}: {error} (a mistake in this program; --verbose shows where)"
    )


def _usage_error(error: typer.TyperException) -> int:
    """What typer found wrong, with the command that explains more; the help as it is of one that was called bare."""
    context = getattr(error, "ctx", None)
    if context is not None and error.format_message() == context.get_help():
        print(error.format_message(), file=sys.stderr)
        return error.exit_code
    command = context.command_path if context is not None else "forecast-scheduler"
    return _fail(error.exit_code, f"{error.format_message().rstrip('.')} (see {command} --help)")


def _fail(status: int, message: str) -> int:
    print(f"forecast-scheduler: {redacted(' '.join(message.split()))}", file=sys.stderr)
    return status
