"""Samples -> OpenMetrics text -> blocks of a TSDB (promtool tsdb create-blocks-from openmetrics)."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from base.arrays import Floats, Ints
from testing.servers.prometheus import promtool

# promtool scans a file once per block it makes, so every file holds one block: blocks of 18 hours (2 h x 3 x 3, the
# largest range it knows below a day), aligned to multiples of it.
_BLOCK_SECONDS = 18 * 3600
_PLAIN = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """One series. times: (n,) unix seconds, ascending; values: (n,)."""

    name: str
    labels: Mapping[str, str]
    times: Ints
    values: Floats

    @property
    def prefix(self) -> str:
        """Name and labels in the exposition format."""
        pairs = [f'{_quoted(label)}="{_escaped(value)}"' for label, value in self.labels.items()]
        if _PLAIN.fullmatch(self.name):
            return f"{self.name}{{{','.join(pairs)}}}"
        return f"{{{','.join([_quoted(self.name), *pairs])}}}"

    @property
    def is_utf8(self) -> bool:
        """Whether its name or that of a label has a character that Prometheus knows from version 3 on."""
        return not all(_PLAIN.fullmatch(name) for name in (self.name, *self.labels))


def write_blocks(
    series: Sequence[MetricSeries], directory: Path, *, parallel: int = 2, program: Path | None = None
) -> int:
    """Back-fill a TSDB directory; returns the number of samples. program: another promtool than promtool_path."""
    directory.mkdir(parents=True, exist_ok=True)
    filled = [one for one in series if len(one.times)]
    first = min(int(one.times[0]) for one in filled) // _BLOCK_SECONDS
    last = max(int(one.times[-1]) for one in filled) // _BLOCK_SECONDS
    prefixes = [one.prefix for one in filled]
    bounds = np.arange(first, last + 2) * _BLOCK_SECONDS
    cuts = [np.searchsorted(one.times, bounds) for one in filled]
    with tempfile.TemporaryDirectory(dir=directory) as scratch, ThreadPoolExecutor(parallel) as threads:
        jobs = []
        for window in range(last - first + 1):
            if all(cut[window] == cut[window + 1] for cut in cuts):
                continue
            path = Path(scratch) / f"{window}.om"
            with path.open("w") as file:
                for one, prefix, cut in zip(filled, prefixes, cuts, strict=True):
                    part = slice(cut[window], cut[window + 1])
                    pairs = zip(one.values[part].tolist(), one.times[part].tolist(), strict=True)
                    file.writelines(f"{prefix} {value!r} {time}\n" for value, time in pairs)
                file.write("# EOF\n")
            jobs.append(threads.submit(_import, path, directory, program))
        for job in jobs:
            job.result()
    return sum(len(one.times) for one in filled)


def _import(path: Path, directory: Path, program: Path | None) -> None:
    arguments = ("tsdb", "create-blocks-from", "--max-block-duration=24h", "--quiet", "openmetrics", path, directory)
    promtool(*arguments, program=program)
    path.unlink()


def _quoted(name: str) -> str:
    """https://prometheus.io/docs/specs/om/open_metrics_spec/ and its UTF-8 names of Prometheus 3."""
    return name if _PLAIN.fullmatch(name) else f'"{_escaped(name)}"'


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
