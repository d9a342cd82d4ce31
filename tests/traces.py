"""Where the public traces are, if they are anywhere: in the directory that $TRACES names, as for `make bench`.

Without it, in shared/traces beside the clone. data/README.md, "The traces", says which files are meant.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

TRACES = Path(os.environ.get("TRACES") or Path(__file__).resolve().parents[2] / "shared" / "traces")


def needs_traces(*names: str, untested: str) -> pytest.MarkDecorator:
    """Skip where one of these files is missing; pytest prints the reason in its summary.

    untested : what nobody has looked at then
    """
    missing = [name for name in names if not (TRACES / name).exists()]
    reason = f"NOT TESTED: {untested}. TRACES=DIR must name a directory with {', '.join(missing)} (data/README.md)"
    return pytest.mark.skipif(bool(missing), reason=reason)
