"""The first part of docs/start/getting-started.md, run as it stands there, in what looks like a clone."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from forecast.hot_share import HOT_SHARE
from testing.waiting import eventually
from tests.docs.pages import ROOT, Block, blocks, commands, text_of

pytestmark = pytest.mark.long

_RULES_SECONDS = 150
_PATIENCE_SECONDS = 600  # the first time on a machine, programs are built
_NOT_HERE = ("git clone", "make setup")  # whoever runs the tests has done both
_OWN_TERMINAL = re.compile(r"in a\s+terminal\s+of\s+its\s+own:$|in\s+its\s+terminal:$", re.IGNORECASE)

_SAID = {
    "forecast-scheduler train": r"published \S+ at local-cluster/models: 48 services, 50 nodes, learned from 10 days",
    "forecast-scheduler explain shop/checkout-first": r"checkout-first \(shop/Deployment/checkout\) on 50 nodes, best",
    "forecast-scheduler nodes --prometheus": r"3 of 50 nodes, expected peaks of the next 24 h",
    "forecast-scheduler replay": r"forecast .* \d\.\d\d % ",
    "forecast-scheduler nodes --scorer": r"2 of 50 nodes, expected peaks of the next 24 h",
    "forecast-scheduler node small-01": r"small-01, the next 24 h(.|\n)*What makes the peak(.|\n)*What helps",
    "forecast-scheduler explain shop/checkout-third --last": r"node \S+ .*of \d+.*: expected peak \d+ % of \w+ at ",
    "FORECAST_SCHEDULER_HOLIDAY_COUNTRY=DE forecast-scheduler train": r"published \S+ at local-cluster/models",
    "forecast-scheduler models rollback": r"model in use: \S+",
    "kubectl -n shop get pod checkout-first": r"checkout-first +1/1 +Running .* (small|medium|large)-\d\d ",
    "kubectl -n shop get pod checkout-advised": (
        r'^((small|medium|large)-\d\d) .*\\"node\\":\\"\1\\",\\"expected_peak\\":\{\\"resource'
    ),
    "python -m json.tool": r'"pod": "shop/checkout-second"(.|\n)*"advised_node": "(small|medium|large)-\d\d"',
    "kubectl -n shop events --for pod/checkout-third": r"ForecastScheduled .* expected peak \d+ % of \w+ at ",
    "kubectl -n shop get pod checkout-fourth": r"checkout-fourth +1/1 +Running .* (large-41|medium-25|small-01) ",
}
"""What matters of what commands of the page say, by how they begin."""


class Terminal:
    """A command that goes on while others are typed elsewhere."""

    def __init__(self, lines: list[str], directory: Path, number: int) -> None:
        self.command = " ".join(lines[-1].split()[:2])
        self.log = directory / f"terminal-{number}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                ["bash", "-e", "-c", "\n".join([*lines[:-1], f"exec {lines[-1]}"])],
                cwd=directory, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def wait_for(self, line: str) -> None:
        """Until it has said this line, or one that differs from its first figure on."""
        begin = re.split(r"\d", line)[0]
        said = eventually(lambda: begin in self.said() or self.process.poll() is not None, _PATIENCE_SECONDS)
        assert said and begin in self.said(), f"{self.command} did not say {begin!r}: {self.said()}"

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def interrupt(self) -> None:
        """Ctrl-C, which all processes of a terminal get."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
            self.process.wait(60)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Reader:
    """Types what the page says. said: by command line; environment: of the first terminal."""

    def __init__(self, directory: Path) -> None:
        self._directory, self.environment = directory, dict(os.environ)
        self.terminals: list[Terminal] = []
        self.said: dict[str, str] = {}

    def read(self, block: Block) -> None:
        """Type the commands of a block."""
        lines = [line for line in commands(block) if not line.startswith(_NOT_HERE)]
        if not lines:
            return
        if _OWN_TERMINAL.search(block.before):
            self._open(lines, block.text.rstrip().splitlines()[-1])
        else:
            for line in lines:
                self._type(line)

    def _open(self, lines: list[str], last_said: str) -> None:
        opened = Terminal(lines, self._directory, len(self.terminals))
        self.terminals.append(opened)
        opened.wait_for(last_said)

    def interrupt(self, command: str) -> None:
        """Ctrl-C in the terminal in which this runs."""
        for terminal in self.terminals:
            if terminal.command == command:
                terminal.interrupt()

    def _type(self, line: str) -> None:
        said = self._run(line)
        if "query=ALERTS{" in line and self._a_hot_peak_lies_ahead():  # once it is scraped and the rules are evaluated
            assert eventually(lambda: "alertstate" in self._run(line), _RULES_SECONDS), said
            said = self._run(line)
        self.said[line] = said

    def _a_hot_peak_lies_ahead(self) -> bool:
        """Whether today still brings one, which depends on the hour at which this runs."""
        nodes = httpx.get(f"{self.environment['SCHEDULER']}/v1/nodes?sort=peak").raise_for_status().json()["nodes"]
        soon = datetime.now(UTC) + timedelta(minutes=10)
        peaks = [one["peak"] for one in nodes if one["peak"] and one["peak"]["share"] > HOT_SHARE]
        return any(datetime.fromisoformat(peak["at"]) > soon for peak in peaks)

    def _run(self, line: str) -> str:
        kept = self._directory / "environment"  # . env.sh counts for the lines that follow
        done = subprocess.run(
            ["bash", "-e", "-c", f"{line}\nenv -0 > {kept}"],
            cwd=self._directory, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=_PATIENCE_SECONDS,
        )  # fmt: skip
        logs = "\n".join(terminal.said()[-1500:] for terminal in self.terminals)
        assert done.returncode == 0, f"{line}: {done.returncode}\n{done.stdout}{done.stderr}\n{logs}"
        self.environment = dict(pair.split("=", 1) for pair in kept.read_text().split("\0") if pair)
        return done.stdout + done.stderr

    def close(self) -> None:
        for terminal in reversed(self.terminals):
            terminal.kill()


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """In what looks like a clone: what the commands write does not land in the real one."""
    look_like_a_clone(tmp_path)
    reader = Reader(tmp_path)
    yield reader
    reader.close()


def test_a_newcomer_gets_from_a_clone_to_pods_that_were_placed_by_their_forecast(reader: Reader) -> None:
    for heading, section in _first_part():
        began = time.monotonic()
        for block in section:
            if "without `--shadow`" in block.before:
                reader.interrupt("forecast-scheduler extender")  # as the page says before it
            reader.read(block)
        seconds = time.monotonic() - began  # what the page's table has
        print(f"{heading.removeprefix(': ')}: {seconds:.0f} s")
    for command, pattern in _SAID.items():
        (said,) = [text for line, text in reader.said.items() if line.startswith(command)]
        assert re.search(pattern, said), f"{command}: {said}"
    (rolled_back,) = [text for line, text in reader.said.items() if "models rollback" in line]
    status = f"{reader.environment['SCHEDULER']}/v1/status"
    version = rolled_back.removeprefix("model in use: ").strip()
    assert eventually(lambda: httpx.get(status).json()["model"]["version"] == version)
    shadow, real = (reader.terminals[number] for number in (2, 3))
    assert shadow.process.returncode == 0, shadow.said()
    assert "Traceback" not in "".join(terminal.said() for terminal in (shadow, real))
    for terminal in reversed(reader.terminals):
        terminal.interrupt()
        assert "Traceback" not in terminal.said(), terminal.said()


def look_like_a_clone(directory: Path) -> None:
    """After `make setup`, in a directory that is there and empty."""
    for entry in ROOT.iterdir():
        if entry.name not in ("local-cluster", ".git", ".venv"):
            (directory / entry.name).symlink_to(entry)
    environment = directory / ".venv"
    environment.mkdir()
    for entry in Path(sys.prefix).iterdir():
        if not entry.name.startswith((".installed", ".python")):
            (environment / entry.name).symlink_to(entry)
    for stamp in (".python", ".installed", ".installed-test"):  # else make would install into the real environment
        (environment / stamp).touch()


def _first_part() -> list[tuple[str, list[Block]]]:
    """Heading and console blocks of each section."""
    text = text_of(ROOT / "docs" / "start" / "getting-started.md")
    first = text.partition("\n# Part 1")[2].partition("\n# Part 2")[0]
    sections = [section.partition("\n") for section in first.split("\n## ")]
    found = [(head, [one for one in blocks(rest) if one.language == "console"]) for head, _, rest in sections]
    assert all(section for _, section in found), "docs/start/getting-started.md has another first part"
    return found
