"""The option by which commands name a policy document, and what it means as settings."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from forecast_scheduler.settings.policy_place import split_place

PoliciesOption = Annotated[
    str | None,
    typer.Option(
        "--policies",
        metavar="WHERE",
        help="Policies by pod: a file, or configmap:NAMESPACE/NAME. Changes take effect without a restart.",
    ),
]


def policies_option(where: str | None) -> dict[str, Any]:
    """The option as settings of the group `policies`, in place of what the file says; nothing where it is not given.

    Raises InputError where it names nothing.
    """
    if where is None:
        return {}
    file, config_map = split_place(where)
    return {"file": "" if file is None else file, "config_map": config_map or ""}
