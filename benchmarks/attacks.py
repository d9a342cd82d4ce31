"""What attacks on the four HTTP services cost: memory, probes, log, and the answers that others get meanwhile.

    python -m benchmarks.attacks [--service NAME]... [--only ATTACK]... [--seconds 5] [--settle 60] [--code-before PATH]

Each service runs as a process of its own on a real API server. It takes no tokens, so every request reaches its
routes. The attacker is another process (testing/processes/attacks.py). Meanwhile /healthz is asked on new connections,
on the port of the service and where the kubelet asks (`serving.probe_port`), and an honest client asks one question
again and again, ten times a second each. After each attack, the service has `--settle` seconds to return to its memory
before the first one. --code-before attacks the services of another checkout as well, whose probes may have no port of
their own. Ends with status 1 where a figure of this one misses its limit: the memory limit of deploy/, 10 % of memory
more than before, 500 ms for 99 % of the probes, 10 kB of log, no wrong answer and no error.
"""

from __future__ import annotations

import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import httpx

from benchmarks.attacked_services import SERVICES, Attacked, started
from benchmarks.harness import command_line, machine_load, quantile
from testing.processes.attacks import ATTACKS, attack
from testing.processes.process_figures import resident_bytes
from testing.processes.scorer_process import ROOT

_HEALTH_SECONDS: Final = 0.5
_BACK: Final = 1.1
_LOG_BYTES: Final = 10_000
_EVERY: Final = 0.1
_PATIENCE: Final = 20.0
_CALM_SECONDS: Final = 3.0
_MIB: Final = 2**20
_HEADINGS: Final = (
    "code", "service", "attack", "before", "most", "limit", "after", "p99", "most", "p99", "most", "bytes", "calm",
    "p50", "p99", "wrong", "errors", "missed",
)  # fmt: skip
_WIDTHS: Final = ("6", "9", "12", *(">6",) * 8, ">8", *(">6",) * 5, "")


@dataclass(slots=True)
class _Seen:
    """By the watchers: resident bytes; seconds of probes, /healthz and honest answers; wrong answers and errors."""

    resident: list[int] = field(default_factory=list)
    probes: list[float] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    honest: list[float] = field(default_factory=list)
    first: bytes = b""  # the honest answer in good order
    wrong: int = 0
    errors: list[str] = field(default_factory=list)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each service and attack."""
    parser = command_line(__doc__)
    parser.add_argument("--service", action="append", choices=SERVICES)
    parser.add_argument("--only", action="append", choices=list(ATTACKS), metavar="ATTACK", help=", ".join(ATTACKS))
    parser.add_argument("--seconds", type=float, default=5.0, help="of each attack")
    parser.add_argument("--settle", type=float, default=60.0, help="seconds to return to the memory before")
    parser.add_argument("--code-before", type=Path, metavar="PATH", help="checkout to attack as well")
    asked = parser.parse_args(arguments)
    print(" " * 29 + f"{'RSS in MiB':^27} {'probe, ms':^13} {'/healthz, ms':^13} {'log':>8} {'honest client, ms':^20}")
    print(_row(_HEADINGS), flush=True)
    names, attacks = tuple(asked.service or SERVICES), tuple(asked.only or ATTACKS)
    missed = {
        label: _all_attacked(label, code.resolve(), names, attacks, asked.seconds, asked.settle)
        for label, code in (("before", asked.code_before), ("now", ROOT))
        if code is not None
    }
    print(f"{machine_load()}; rows that missed a limit: {missed}")
    sys.exit(1 if missed["now"] else 0)


def _all_attacked(
    label: str, code: Path, names: tuple[str, ...], attacks: Sequence[str], seconds: float, settle: float
) -> int:
    """Rows that missed a limit."""
    missed = 0
    with tempfile.TemporaryDirectory() as scratch, started(names, code, Path(scratch)) as services:
        for one in services:
            calm = _watched(one, lambda: time.sleep(_CALM_SECONDS))
            for name in attacks:
                missed += bool(_attacked(label, one, name, seconds, settle, calm))
    return missed


def _attacked(label: str, one: Attacked, name: str, seconds: float, settle: float, calm: _Seen) -> list[str]:
    """Attack, print the row, and return what missed its limit."""
    before, logged = calm.resident[-1], len(one.process.log)
    seen = _watched(one, lambda: attack(name, one.target, seconds), calm.first)
    log, most = len(one.process.log) - logged, max(seen.resident)
    deadline = time.monotonic() + settle
    while (after := resident_bytes(one.pid)) > _BACK * before and time.monotonic() < deadline:
        time.sleep(0.5)
    checks = {
        "memory": most > one.limit,
        "return": after > _BACK * before,
        "probe": _p99(seen.probes or seen.health) > _HEALTH_SECONDS,
        "log": log > _LOG_BYTES,
        "answers": bool(seen.wrong or seen.errors),
    }
    missed = [what for what, misses in checks.items() if misses]
    memory = [f"{value / _MIB:.0f}" for value in (before, most, one.limit, after)]
    times = ["" if not of else f"{1000 * value(of):.0f}" for of in (seen.probes, seen.health) for value in (_p99, max)]
    answers = [
        f"{1000 * quantile(*asked):.0f}" for asked in ((calm.honest, 0.5), (seen.honest, 0.5), (seen.honest, 0.99))
    ]
    said = "; ".join([", ".join(missed), *(error[:70] for error in seen.errors[:1])])
    print(_row([label, one.name, name, *memory, *times, log, *answers, seen.wrong, len(seen.errors), said]), flush=True)
    return missed


def _watched(one: Attacked, act: Callable[[], None], first: bytes = b"") -> _Seen:
    """What is seen of the service while `act` runs. first: the honest answer before; empty = it is asked for."""
    seen = _Seen()
    with _asking(one) as (health, honest):
        seen.first = first or honest()
        over = threading.Event()

        def watch(look: Callable[[], None]) -> None:
            while not over.wait(_EVERY):
                look()

        def asked() -> None:
            began = time.perf_counter()
            try:
                answer = honest()
            except httpx.HTTPError as error:
                seen.errors.append(repr(error))
            else:
                seen.wrong += not one.right(answer, seen.first)
            seen.honest.append(time.perf_counter() - began)

        def probed(url: str, took: list[float]) -> None:
            began = time.perf_counter()
            try:
                health(url)
            except httpx.HTTPError as error:
                seen.errors.append(f"/healthz {error!r}")
            took.append(time.perf_counter() - began)

        looks = [asked, lambda: seen.resident.append(resident_bytes(one.pid))]
        looks.append(partial(probed, f"{one.process.url}/healthz", seen.health))
        if one.probes is not None:
            looks.append(partial(probed, one.probes, seen.probes))
        threads = [threading.Thread(target=watch, args=(look,)) for look in looks]
        for thread in threads:
            thread.start()
        try:
            act()
        finally:
            over.set()
            for thread in threads:
                thread.join()
    return seen


@contextmanager
def _asking(one: Attacked) -> Iterator[tuple[Callable[[str], None], Callable[[], bytes]]]:
    """One probe of a URL, on a connection of its own, and one honest question."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    path, body = one.question
    with httpx.Client(base_url=one.process.url, timeout=_PATIENCE, verify=context) as client:

        def health(url: str) -> None:
            with httpx.Client(timeout=_PATIENCE, verify=context) as fresh:
                fresh.get(url).raise_for_status()

        def honest() -> bytes:
            headers = {"Content-Type": "application/json"}
            return client.post(path, content=body, headers=headers).raise_for_status().content

        yield health, honest


def _row(values: Sequence[object]) -> str:
    return " ".join(f"{value!s:{width}}" for value, width in zip(values, _WIDTHS, strict=True))


def _p99(values: Sequence[float]) -> float:
    return quantile(values, 0.99)


if __name__ == "__main__":
    main()
