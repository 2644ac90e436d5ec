"""Index rules, and find for a name the first rule of each theme that chooses it.

What can be looked up (whole names, words, frames) is a dictionary over all rules at once; a regular expression is
compiled and tried only where one of its rule's `needs` occurs in the name or one of its `begins` begins it. A name
that no rule knows, the most frequent case by far, costs a handful of look-ups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.vocabulary.forms import bare_name, builtin_name, clip, function_name, split_frame, split_words
from longpole.vocabulary.rules import DEVICE_THEMES, LOOKED_UP_CHARS, Rule, compile_pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable

_ANY: Final = "*"
_MODULE: Final = "nn.Module: "


@dataclass(slots=True, eq=False)
class Subject:
    """One name in the forms that selectors look at.

    Attributes:
        text: What `exact`, `prefix`, `begins` and `match` see.
        lower: What `needs` are looked for in, in lower case.
        words: The words of an annotation or plain operator; empty for every other form.
        path: The path of a Python frame, with slashes.
        function: The function of a Python frame.
        builtin: What a `<built-in ...>` frame calls.
    """

    text: str
    lower: str
    words: tuple[str, ...] = ()
    path: str = ""
    function: str = ""
    builtin: str = ""


def kernel_subject(name: str) -> Subject:
    """Return the forms of a device span's name as a kernel: its function only."""
    function = function_name(name)
    return Subject(function, function)


def copy_subject(name: str) -> Subject:
    """Return the forms of a device span's name as a copy: the whole name in lower case."""
    lower = clip(name).strip().lower()
    return Subject(lower, lower)


def host_subject(name: str) -> Subject:
    """Return the forms of a host event's name: Python frame, built-in, scoped operator, or plain words."""
    text = clip(name)
    frame = split_frame(text)
    if frame is not None:
        return Subject(text, text.lower(), path=frame[0], function=frame[1])
    builtin = builtin_name(text)
    if builtin:
        return Subject(text, text.lower(), builtin=builtin)
    bare = bare_name(text)
    words = () if "::" in bare or bare.startswith(_MODULE) else split_words(bare)
    return Subject(bare, text.lower(), words)


def subject_of(theme: str, name: str) -> Subject:
    """Return the forms of a name that the rules of a theme look at."""
    if theme in DEVICE_THEMES:
        return kernel_subject(name) if theme == "kernel" else copy_subject(name)
    return host_subject(name)


class RuleIndex:
    """Rules of one or more themes, ready to be asked about a name."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        """Index the rules; of one theme's, the earlier wins where several choose a name."""
        self.rules = tuple(rules)
        self._exact: dict[str, list[int]] = {}
        self._prefixes: dict[str, list[tuple[str, int]]] = {}
        self._whole: dict[tuple[str, ...], list[int]] = {}
        self._phrases: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        self._files: dict[str, list[tuple[str, int]]] = {}
        self._folders: dict[str, list[tuple[str, str, int]]] = {}
        self._functions: dict[str, list[int]] = {}
        self._builtins: dict[str, list[int]] = {}
        self._needs: dict[str, list[int]] = {}
        self._begins: dict[str, list[tuple[str, int]]] = {}
        self._always: list[int] = []
        self._compiled: dict[int, tuple[re.Pattern[str], ...]] = {}
        for index, rule in enumerate(self.rules):
            self._add(index, rule)
        self._needed = _minimal(self._needs)

    def _add(self, index: int, rule: Rule) -> None:
        chosen = rule.selectors
        for key, table in (("exact", self._exact), ("function", self._functions), ("builtin", self._builtins)):
            for text in _cased(rule, chosen.get(key, ())):
                table.setdefault(text, []).append(index)
        for text in chosen.get("prefix", ()):
            self._prefixes.setdefault(text[:LOOKED_UP_CHARS], []).append((text, index))
        for text in chosen.get("whole", ()):
            self._whole.setdefault(split_words(text), []).append(index)
        for text in chosen.get("phrase", ()):
            words = split_words(text)
            self._phrases.setdefault(words[0], []).append((words, index))
        for text in chosen.get("frame", ()):
            self._add_frame(index, rule, text)
        if "match" in chosen:
            self._add_gates(index, rule)

    def _add_gates(self, index: int, rule: Rule) -> None:
        for text in rule.needs:
            self._needs.setdefault(text, []).append(index)
        for text in _cased(rule, rule.begins):
            self._begins.setdefault(text[:LOOKED_UP_CHARS], []).append((text, index))
        if not rule.needs and not rule.begins:
            self._always.append(index)

    def _add_frame(self, index: int, rule: Rule, text: str) -> None:
        path, colon, function = text.rpartition(": ")
        if not colon or not path.strip("/"):
            hint = "write 'path/file.py: function' or 'folder/: *'"
            raise rule.refuse(key="frame", found=repr(text), hint=hint)
        if path.endswith("/"):
            inner = path.rstrip("/").rpartition("/")[2]
            self._folders.setdefault(inner, []).append((path, function, index))
        else:
            self._files.setdefault(f"{path.rpartition('/')[2]}: {function}", []).append((path, index))

    def find(self, subject: Subject) -> int | None:
        """Return the number of the first of all rules that chooses the name, None if none does."""
        return min(self._candidates(subject), default=None)

    def find_each(self, subject: Subject) -> tuple[int, ...]:
        """Return the numbers of the first rule of each theme that chooses the name, ascending."""
        found = self._candidates(subject)
        if len(found) <= 1:
            return tuple(found)
        first: dict[str, int] = {}
        for index in sorted(found):
            first.setdefault(self.rules[index].theme, index)
        return tuple(first.values())

    def _candidates(self, subject: Subject) -> list[int]:
        text = subject.text
        gate = text[:LOOKED_UP_CHARS]
        found = list(self._exact.get(text, ()))
        if gate in self._prefixes:
            found += [index for prefix, index in self._prefixes[gate] if text.startswith(prefix)]
        if subject.words:
            self._add_by_words(subject.words, found)
        elif subject.function:
            self._add_by_frame(subject.path, subject.function, found)
        elif subject.builtin:
            found += self._builtins.get(subject.builtin, ())
            found += self._builtins.get(subject.builtin.partition(" of ")[0], ())
        self._add_by_pattern(subject, gate, found)
        return found

    def _add_by_words(self, words: tuple[str, ...], found: list[int]) -> None:
        found += self._whole.get(words, ())
        phrases = self._phrases
        for position, word in enumerate(words):
            if word in phrases:
                for phrase, index in phrases[word]:
                    if words[position : position + len(phrase)] == phrase:
                        found.append(index)

    def _add_by_frame(self, path: str, function: str, found: list[int]) -> None:
        found += self._functions.get(function, ())
        *folders, base = path.split("/")
        for key in (f"{base}: {function}", f"{base}: {_ANY}"):
            for file, index in self._files.get(key, ()):
                if path == file or path.endswith(f"/{file}"):
                    found.append(index)
        for part in folders:
            for folder, wanted, index in self._folders.get(part, ()):
                if wanted in (_ANY, function) and f"/{folder}" in f"/{path}":
                    found.append(index)

    def _add_by_pattern(self, subject: Subject, gate: str, found: list[int]) -> None:
        lower = subject.lower
        tried = list(self._always)
        for literal in self._needed:
            if literal in lower:
                tried += [index for need, indexes in self._needs.items() if need in lower for index in indexes]
                break
        if gate in self._begins:
            tried += [index for begin, index in self._begins[gate] if subject.text.startswith(begin)]
        if tried:
            found += [index for index in set(tried) if self.match(index, subject.text)]

    def match(self, index: int, text: str) -> re.Match[str] | None:
        """Return the match of a rule's own expressions in a name, None where none matches.

        Args:
            index: The rule's number.
            text: The name, as in `Subject.text`.

        Raises:
            UsageError: An expression is none.
        """
        patterns = self._compiled.get(index)
        if patterns is None:
            rule = self.rules[index]
            patterns = tuple(compile_pattern(rule, pattern) for pattern in rule.selectors.get("match", ()))
            self._compiled[index] = patterns
        for pattern in patterns:
            found = pattern.search(text)
            if found:
                return found
        return None


def _cased(rule: Rule, texts: Iterable[str]) -> Iterable[str]:
    """Return texts as names are seen by the rule's theme: names of device spans are in lower case."""
    return (text.lower() for text in texts) if rule.theme in DEVICE_THEMES else texts


def _minimal(needs: Iterable[str]) -> tuple[str, ...]:
    """Return the texts that hold no other of the texts: a name without these has none of them."""
    texts = tuple(needs)
    return tuple(text for text in texts if not any(other != text and other in text for other in texts))


def check_rule(rule: Rule) -> None:
    """Check a rule of the user's on its own: its expressions, its examples, its look-alikes.

    Raises:
        UsageError: An expression is none, an `example` is not chosen by the rule, or a `not` is.
    """
    alone = RuleIndex([rule])
    for pattern in rule.selectors.get("match", ()):
        compile_pattern(rule, pattern)
    for key, names, chosen in (("example", rule.examples, True), ("not", rule.look_alikes, False)):
        for name in names:
            if (alone.find(subject_of(rule.theme, name)) is not None) is not chosen:
                verb = "does not choose" if chosen else "chooses"
                hint = f"the rule {verb} this name; mend the rule or the name"
                raise rule.refuse(key=key, found=repr(name), hint=hint)
