"""Pictures of schedules: a grid in text, a page that plays round by round, and a drawing."""

from .before_after import before_after
from .html import embedded, html
from .svg import svg
from .text import text

__all__ = ["before_after", "embedded", "html", "svg", "text"]
