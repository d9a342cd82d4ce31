"""Tables on a terminal of 80 columns."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from forecast_scheduler.reports.request_tables import request_table

_REQUESTS = {"cpu": "1500m", "memory": "2304Mi"}


def test_long_names_and_figures_are_whole_on_a_narrow_terminal() -> None:
    """Failed before: services of one namespace were all `checko…`."""
    names = [f"checkout-production/Deployment/payment-gateway-europe-{region}" for region in ("west", "north")]
    services = [
        {
            "service": name,
            "pods": 12.0,
            "today": _REQUESTS,
            "recommended": _REQUESTS,
            "by_hour": {"08-20": "730m"},
            "saved_cores": 12.3,
        }
        for name in names
    ]
    written = StringIO()
    Console(file=written, width=80).print(request_table({"services": services, "risk": {}}))
    lines = [line.split("│")[1:-1] for line in written.getvalue().splitlines() if "│" in line]
    assert "".join(cells[0].strip() for cells in lines) == "".join(names)
    assert [cells[2].strip() for cells in lines if cells[2].strip()] == ["1500m", "-> 1500m"] * 2
    assert "…" not in written.getvalue()
