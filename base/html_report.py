"""HTML reports made from Jinja2 templates, each one file that needs nothing else. A template lies next to its code."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from base.load_colours import FULL_COLOUR, HOT_COLOUR


def _source(path: str) -> str:
    package, _, rest = path.partition("/")
    return files(package).joinpath(rest).read_text(encoding="utf-8")


_TEMPLATES = Environment(
    loader=FunctionLoader(_source), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
# Data for scripts (`tojson`): no text in it can end its element, and NaN, which JSON does not have, is an error.
_TEMPLATES.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}


def html_report(template: str, *, plots: bool = False, **values: Any) -> str:
    """A whole page, with every text escaped; what is HTML or a script already is a markupsafe.Markup.

    template : its path, package first: "scorer/replay/report.html.j2"
    plots    : the page draws figures: it holds plotly's script, 4 MB
    """
    script = ""
    if plots:
        from plotly.offline import get_plotlyjs  # slow to import, and services make pages without plots

        script = Markup(get_plotlyjs())
    found = _TEMPLATES.get_template(template)
    return found.render(values, plotly=script, hot_colour=HOT_COLOUR, full_colour=FULL_COLOUR)
