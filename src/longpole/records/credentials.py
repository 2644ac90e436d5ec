"""Take credentials out of texts before they are kept: names in traces, command lines, variables of the environment.

What is kept is passed on more freely than the environment it was recorded in. Only forms that nothing else has are
taken out; what merely could be a secret, such as a hash, stays, unless its name says that it is one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

REDACTED: Final = "[redacted]"

# What issuers of tokens publish of their form, each with a text that it cannot do without.
_TOKENS: Final = (
    ("AKIA", r"\bAKIA[0-9A-Z]{16}\b"),  # AWS access keys, lasting and (ASIA) of a session
    ("ASIA", r"\bASIA[0-9A-Z]{16}\b"),
    ("hf_", r"\bhf_[0-9A-Za-z]{30,}"),  # Hugging Face
    ("gh", r"\bgh[oprsu]_[0-9A-Za-z]{30,}"),  # GitHub
    ("github_pat_", r"\bgithub_pat_\w{20,}"),
    ("glpat-", r"\bglpat-[\w-]{20,}"),  # GitLab
    ("sk-", r"\bsk-[\w-]{20,}"),  # OpenAI and others
    ("xox", r"\bxox[abeoprs]-[\w-]{10,}"),  # Slack
    ("AIza", r"\bAIza[\w-]{35}"),  # Google
    ("eyJ", r"\beyJ[\w-]{10,999}\.[\w-]{10,9999}\.[\w-]*"),  # JSON web tokens
    ("PRIVATE KEY", r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?"),
)
_VALUE: Final = r"(?=[^\s,;&]*[A-Za-z])[^\s,;&'\"]{8,}"  # not a plain number
_ASSIGNED: Final = re.compile(
    r"((?:secret|password|passwd|api[_-]?key|access[_-]?key|auth[_-]?token|access[_-]?token|hf[_-]?token)"
    r"(?:[_-]?(?:id|key|value))?[\"']?\s*[=:]\s*[\"']?)" + _VALUE,
    re.IGNORECASE,
)
_BEARER: Final = re.compile(r"(\bbearer\s+)" + _VALUE, re.IGNORECASE)
_IN_URL: Final = re.compile(r"(://)[^\s/:@]{1,256}:[^\s/@]{1,256}(?=@)")
_WORDS: Final = re.compile(r"secret|passw|key|token|bearer|://", re.IGNORECASE)
_SECRET_NAME: Final = re.compile(
    r"(?:^|[._-])(?:pass|pw|password|passwd|passphrase|secrets?|credentials?|creds?|tokens?|auth|authorization|cookie"
    r"|api_?key|access_?key|private_?key|key)(?:$|[._-])",
    re.IGNORECASE,
)
_ANY_TOKEN: Final = re.compile("|".join(pattern for _, pattern in _TOKENS))


def redact(text: str) -> str:
    """Return a text with `[redacted]` in place of credentials.

    >>> redact("aten::mm"), redact("get https://me:pass1234@host/x"), redact("HF_TOKEN=abcdefgh1")
    ('aten::mm', 'get https://[redacted]@host/x', 'HF_TOKEN=[redacted]')
    """
    if any(needed in text for needed, _ in _TOKENS):
        text = _ANY_TOKEN.sub(REDACTED, text)
    if _WORDS.search(text):
        text = _ASSIGNED.sub(r"\1" + REDACTED, text)
        text = _BEARER.sub(r"\1" + REDACTED, text)
        text = _IN_URL.sub(r"\1" + REDACTED, text)
    return text


def redact_variable(name: str, value: str) -> str:
    """Return the value of a variable or option without credentials; nothing of it where its name names a secret.

    >>> redact_variable("NCCL_ALGO", "Ring"), redact_variable("TORCH_HUB_TOKEN", "abc")
    ('Ring', '[redacted]')
    """
    return REDACTED if value and _SECRET_NAME.search(name) else redact(value)


def redact_arguments(argv: Sequence[str]) -> list[str]:
    """Return a command line without credentials: `--token x` and `--token=x` keep their option's name only.

    >>> redact_arguments(["train.py", "--api-key", "abc", "--lr=0.1", "HF_TOKEN=abcdefgh1"])
    ['train.py', '--api-key', '[redacted]', '--lr=0.1', 'HF_TOKEN=[redacted]']
    """
    kept: list[str] = []
    hide = False
    for argument in argv:
        name, equals, value = argument.partition("=")
        if hide and not argument.startswith("-"):
            kept.append(REDACTED)
        elif equals and " " not in name:
            kept.append(f"{name}={redact_variable(name, value)}")
        else:
            kept.append(redact(argument))
        hide = argument.startswith("-") and not equals and _SECRET_NAME.search(argument) is not None
    return kept


def redact_all(texts: Sequence[str]) -> list[str]:
    """Return texts without credentials; a single look at all of them spares most files any further work."""
    together = "\n".join(texts)
    if not any(needed in together for needed, _ in _TOKENS) and not _WORDS.search(together):
        return list(texts)
    return [redact(text) for text in texts]
