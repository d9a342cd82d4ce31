"""HTML reports made from Jinja2 templates, each one file that needs nothing else. A template lies next to its code."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined


def _source(path: str) -> str:
    package, _, rest = path.partition("/")
    return files(package).joinpath(rest).read_text(encoding="utf-8")


_TEMPLATES = Environment(
    loader=FunctionLoader(_source), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
# Data for scripts (`tojson`): no text in it can end its element, and NaN, which JSON does not have, is an error.
_TEMPLATES.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}


def html_report(template: str, **values: Any) -> str:
    """A whole page, with every text escaped; what is HTML or a script already is a markupsafe.Markup.

    template : its path, package first: "scorer/replay/report.html.j2"
    """
    return _TEMPLATES.get_template(template).render(values)
