"""The terminal page: one section a file, put together by `page`."""

from __future__ import annotations

from longpole.report.text.page import render_text

__all__ = ["render_text"]
