"""Names of spans and threads as codes, each harmless and of bounded length."""

from __future__ import annotations

from longpole.readers.spelling import show_controls
from longpole.records.credentials import redact


def shown(name: str) -> str:
    """Return a name without control characters and credentials, of bounded length."""
    return redact(show_controls(name))


class Names:
    """Texts, each once."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._codes: dict[str, int] = {}
        self._written: dict[str, int] = {}

    def code(self, text: str) -> int:
        """Return the code of a text as it was written."""
        found = self._written.get(text)
        if found is None:
            name = shown(text)
            found = self._codes.setdefault(name, len(self.texts))
            if found == len(self.texts):
                self.texts.append(name)
            self._written[text] = found
        return found
