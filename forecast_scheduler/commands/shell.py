"""What every command needs around its few lines of work: settings, log, consoles, and files to write.

This is the only place that reads the environment, sets a log level or decides where text goes.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from base.errors import InputError
from base.progress import Progress
from base.redaction import redacted
from forecast_scheduler.commands.log_format import LogFormat, formatter_of, log_format_option
from forecast_scheduler.commands.output_format import OutputFormat, output_format, tables_for_csv
from forecast_scheduler.commands.progress import show_progress
from kube.client.cluster_access import ClusterAccess

STDOUT = Path("-")
"""`--json -` writes to standard output."""

if TYPE_CHECKING:
    from rich.table import Table

    from forecast_scheduler.settings.document import Settings

LOG_WIDTH = 110
"""Columns of a table if the width of the output is unknown (a pipe, a CI log)."""


@dataclass(frozen=True, slots=True)
class Shell:
    """The surroundings of one command.

    out : tables and results
    err : progress and log
    """

    settings: Settings
    out: Console
    err: Console

    def with_files(self, *, events: Path | None, moved: Path | None) -> Shell:
        """The same with the calendar of events and the list of moved services that options name, if they do."""
        named = {name: path for name, path in (("events", events), ("moved", moved)) if path is not None}
        return replace(self, settings=self.settings.replace(**named)) if named else self

    def progress(self) -> AbstractContextManager[Progress]:
        """`with shell.progress() as progress:` gives the callback that long-running functions take."""
        return show_progress(self.err)

    def say(self, text: str) -> None:
        """A line of the result, exactly as it is."""
        if output_format.get() is OutputFormat.MARKDOWN:
            self._write_markdown(text)
        else:
            self.out.print(redacted(text), highlight=False, markup=False, soft_wrap=True)

    def show(self, *parts: Table | Iterable[Table | str]) -> None:
        """Tables and lines of the result, one after the other."""
        output = output_format.get()
        for part in parts:
            for one in part if isinstance(part, Iterable) else [part]:
                if isinstance(one, str):
                    self.say(one)
                elif output is OutputFormat.CSV:
                    tables_for_csv.get().append(one)
                elif output is OutputFormat.MARKDOWN:
                    self._write_markdown(one)
                else:
                    self.out.print(one)

    def _write_markdown(self, part: Table | str) -> None:
        from forecast_scheduler.reports.table_text import markdown_text

        sys.stdout.write(redacted(markdown_text(part)))

    def write_report(self, path: Path, page: str) -> None:
        """Write an HTML page with plots, and say where it is."""
        write_text(path, page)
        self.say(f"report with plots: {path.resolve()}")

    def cluster_access(
        self, kubeconfig: Path | None, context: str | None, cluster: Path | None = None
    ) -> ClusterAccess:
        """The cluster that the options name, else the settings. Raises InputError if `cluster`, a file, is another."""
        if cluster is not None and (kubeconfig or context):
            option = "--kubeconfig" if kubeconfig else "--context"
            raise InputError(f"--cluster and {option} name two clusters: pass one of them")
        return ClusterAccess(kubeconfig or self.settings.kubernetes.kubeconfig, context)

    def history(self, option: Path | str | None) -> Path:
        """The history directory, from the option or the settings; InputError where there is neither."""
        named = option or self.settings.history
        if named is None:
            raise InputError("no history named: pass --history DIR, for instance --history data/sample")
        directory = Path(named)
        if not directory.is_dir():
            what = "is a file" if directory.exists() else "does not exist"
            raise InputError(f"history directory {directory} {what}: pass the directory that holds usage.parquet")
        return directory


def open_shell(
    config: Path | None,
    *,
    verbose: bool = False,
    json_file: Path | None = None,
    service: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> Shell:
    """Read the settings and set up log and consoles. With `--json -` standard output belongs to the JSON alone; with
    `--output json` or yaml there are no tables, and with csv lines go to standard error. Raises InputError if both
    print there, or settings cannot be used.

    service     : it runs for long: the log says when, and what happens, not only what goes wrong
    environment : empty = the settings are the defaults, whatever is set
    """
    output = output_format.get()
    if json_file == STDOUT and output not in (OutputFormat.TABLE, OutputFormat.JSON):
        raise InputError(f"--json - and --output {output} both print to standard output: choose one of them")
    from forecast_scheduler.settings.document import load_settings  # a fifth of a second: `--help` does without

    err = _console(stderr=True)
    settings = load_settings(config, environment)
    _set_up_log(err, log_format_option.get() or LogFormat(settings.log_format), verbose=verbose, service=service)
    if service:
        from serving.freed_memory import limit_arenas

        limit_arenas()
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        out = Console(quiet=True)
    else:
        out = err if json_file == STDOUT or output is OutputFormat.CSV else _console(stderr=False)
    return Shell(settings=settings, out=out, err=err)


def check_writable(path: Path | None) -> None:
    """Refuse an output file that cannot be written, before the minutes of work that lead to it and not after."""
    if path is None or path == STDOUT:
        return
    folder = path.parent
    if not folder.is_dir():
        raise InputError(f"cannot write {path}: there is no directory {folder}, create it or choose another file")
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a directory, name a file in it")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise InputError(f"cannot write {path}: permission denied, choose another file")


def write_figures(path: Path | None, figures: dict[str, Any]) -> None:
    """Write figures as JSON to the file of `--json`, and print them as `--output` says, if either is given.

    NaN, which JSON does not have, becomes null.
    """
    figures, output = _shown(figures), output_format.get()
    if path is not None or output is OutputFormat.JSON:
        text = json.dumps(figures, indent=2, allow_nan=False) + "\n"
        if path == STDOUT or output is OutputFormat.JSON:
            sys.stdout.write(text)
        if path is not None and path != STDOUT:
            write_text(path, text)
    if output is OutputFormat.YAML:
        import yaml

        # By way of JSON: keys and values are the same in both.
        plain = json.loads(json.dumps(figures))
        sys.stdout.write(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True))


def write_text(path: Path, text: str) -> None:
    """Replace a file as a whole, so that a full disk or a kill leaves the old one and never half of the new."""
    check_writable(path)
    with _translated_errors(path):
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(temporary, 0o644)  # mkstemp makes files that only their owner can read
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise


@contextmanager
def _translated_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}; make room there or choose another file"
        ) from error


def _shown(value: Any) -> Any:
    """Without NaN, and without secrets: these are hidden before the text is encoded, whose escapes would end a URL."""
    if isinstance(value, dict):
        return {redacted(str(key)): _shown(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(inner) for inner in value]
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, float):  # numpy's float64 is one, too
        return float(value) if math.isfinite(value) else None
    return value


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(stderr=stderr, width=LOG_WIDTH)
    return console


def _set_up_log(err: Console, log_format: LogFormat, *, verbose: bool, service: bool) -> None:
    """Log records to stderr: our warnings by default, with --verbose everything of ours and the libraries' warnings."""
    handler = logging.StreamHandler(err.file)
    handler.setFormatter(formatter_of(log_format, with_time=service))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for package in (
        "forecast",
        "trainer",
        "kube",
        "serving",
        "scorer",
        "placement",
        "extender",
        "scheduler",
        "advisor",
        "admission",
        "forecast_scheduler",
    ):
        logging.getLogger(package).setLevel(logging.DEBUG if verbose else logging.INFO if service else logging.WARNING)
    # Which store was found is not what the user asked for, and decides what every figure means.
    logging.getLogger("forecast_scheduler.discovery").setLevel(logging.DEBUG if verbose else logging.INFO)
    # Warnings of numerical libraries name lines of code: something for developers, who ask for them.
    logging.captureWarnings(True)
    logging.getLogger("py.warnings").setLevel(logging.DEBUG if verbose else logging.ERROR)
