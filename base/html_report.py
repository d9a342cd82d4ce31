"""HTML reports made from Jinja2 templates, each one file that needs nothing else. A template lies next to its code."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from base.load_colours import FULL_COLOUR, HOT_COLOUR

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_TRANSPARENT = "rgba(0,0,0,0)"


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
    return _TEMPLATES.get_template(template).render(values, hot_colour=HOT_COLOUR, full_colour=FULL_COLOUR)


def embedded_plot(figure: Figure) -> Markup:
    """A plotly figure as a piece of a report, as wide as the page; on a phone it scrolls by itself.

    It has no background of its own, so that it can be read on a dark page, too. The page has plotly's script once.
    """
    figure.update_layout(paper_bgcolor=_TRANSPARENT, plot_bgcolor=_TRANSPARENT, autosize=True)
    config = {"displayModeBar": False, "responsive": True}
    drawn = figure.to_html(include_plotlyjs=False, full_html=False, config=config)
    return Markup(f'<div class="scroll plotted">{drawn}</div>')
