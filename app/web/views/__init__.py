"""What each template is given: one frozen dataclass a template, one field a name it uses."""

from app.web.views.base import Fragment, Page, Shell, View

__all__ = ["Fragment", "Page", "Shell", "View"]
