"""`Vocabulary`: what one name means, as a kernel, as a copy, on the host, as a marker of the unit of work.

Every answer is a pure function of the name. Answers are kept, up to a bound, because a trace repeats its names
thousands of times. Who reads a row's category decides which of the four questions to ask.
"""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from longpole.errors import UsageError
from longpole.vocabulary.forms import collective_kind
from longpole.vocabulary.index import (
    RuleIndex,
    Subject,
    check_rule,
    copy_subject,
    host_subject,
    kernel_subject,
    subject_of,
)
from longpole.vocabulary.meanings import CopyMeaning, HostMeaning, KernelMeaning, StepMeaning
from longpole.vocabulary.rules import Rule, parse_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

_FORMAT: Final = b"longpole.vocabulary/1"  # raise it when the matcher reads the same rules differently
_RULES: Final = Path(__file__).with_name("rules")
_FILES: Final = {
    "kernel": "kernels.toml",
    "copy": "copies.toml",
    "call": "calls.toml",
    "activity": "activities.toml",
    "operator": "operators.toml",
    "stage": "stages.toml",
    "carrier": "carriers.toml",
    "step": "steps.toml",
}
_HOST_THEMES: Final = ("call", "activity", "operator", "stage", "carrier")

_KEPT_ANSWERS: Final = 1 << 15  # with the length below: at most 32 MB of names for each question
_KEPT_NAME_CHARS: Final = 1024
_ORDINAL_DIGITS: Final = 18

_PROTOCOL: Final = re.compile(r"(?:_|x|ring|tree)(ll128|ll|simple)(?=_|kernel|mc|$)")
_PROTOCOL_FAMILIES: Final = ("nccl", "rccl", "msccl")

_NO_KERNEL: Final = KernelMeaning(is_collective=False)
_NO_COPY: Final = CopyMeaning(direction="unknown", is_copy=False)
_NO_HOST: Final = HostMeaning()

_Answer = TypeVar("_Answer")


class Vocabulary:
    """The taxonomy of names: ours, with a user's rules before it.

    Attributes:
        digest: A stable hash of all rules; part of every cache key that rests on them.
    """

    def __init__(self, texts: Mapping[str, str], extra: Sequence[Rule], digest: str) -> None:
        """Keep the text of each theme's file, to be read when it is first needed.

        Args:
            texts: The content of our rules file by theme.
            extra: The user's rules, checked.
            digest: The hash of both.
        """
        self.digest = digest
        self._texts = dict(texts)
        self._extra = tuple(extra)
        self._indexes: dict[tuple[str, ...], RuleIndex] = {}
        self._kernels: dict[str, KernelMeaning] = {}
        self._copies: dict[str, CopyMeaning] = {}
        self._hosts: dict[str, HostMeaning] = {}
        self._host_meanings: dict[tuple[tuple[int, ...], str, str], HostMeaning] = {}
        self._steps: dict[str, StepMeaning | None] = {}

    @classmethod
    def load(cls, extra: Path | None = None) -> Vocabulary:
        """Read our rules, and a user's file of the same form whose rules go before ours.

        Args:
            extra: The user's rules file, or None.

        Raises:
            UsageError: The user's file cannot be read, or a rule in it is wrong; file, rule and key are named.
        """
        digest = hashlib.sha256(_FORMAT)
        texts = {}
        for theme, file in _FILES.items():
            content = (_RULES / file).read_bytes()
            digest.update(content)
            texts[theme] = content.decode()
        if extra is None:
            return cls(texts, (), digest.hexdigest())
        text = _read(extra)
        digest.update(b"\0" + text.encode())
        rules = parse_rules(text, str(extra))
        for rule in rules:
            check_rule(rule)
        return cls(texts, rules, digest.hexdigest())

    def rules(self, theme: str) -> tuple[Rule, ...]:
        """Return the rules of one theme in the order in which they are tried."""
        return self._index(theme).rules

    def rule(self, theme: str, name: str) -> Rule | None:
        """Return the rule that decides what a name means in one theme, None where none does."""
        index = self._index(theme)
        number = index.find(subject_of(theme, name))
        return None if number is None else index.rules[number]

    def kernel(self, name: str) -> KernelMeaning:
        """Say what a device span's name means as a kernel; a name that no rule knows is computation."""
        return _kept(self._kernels, name, self._judge_kernel)

    def copy(self, name: str) -> CopyMeaning:
        """Say what a device span's name means as a copy or memset."""
        return _kept(self._copies, name, self._judge_copy)

    def host(self, name: str) -> HostMeaning:
        """Say what the name of an operator, annotation, Python frame or runtime call means."""
        return _kept(self._hosts, name, self._judge_host)

    def step(self, name: str) -> StepMeaning | None:
        """Say which unit of work an annotation's name marks, None where it marks none."""
        return _kept(self._steps, name, self._judge_step)

    def _index(self, *themes: str) -> RuleIndex:
        index = self._indexes.get(themes)
        if index is None:
            ours = tuple((theme, self._texts[theme]) for theme in themes)
            index = RuleIndex(self._with_extra(ours)) if self._extra else _our_index(ours)
            self._indexes[themes] = index
        return index

    def _with_extra(self, ours: Iterable[tuple[str, str]]) -> Iterator[Rule]:
        for theme, text in ours:
            yield from (rule for rule in self._extra if rule.theme == theme)
            yield from _our_rules(theme, text)

    def _judge_kernel(self, name: str) -> KernelMeaning:
        subject = kernel_subject(name)
        index = self._index("kernel")
        number = index.find(subject)
        if number is None:
            return _NO_KERNEL
        values = index.rules[number].values
        fused = values.get("fused", False)
        collective = values.get("collective", True) and not fused
        if not collective and not fused:
            return _NO_KERNEL
        family = values.get("family", "custom")
        protocol = _PROTOCOL.search(subject.text) if family in _PROTOCOL_FAMILIES else None
        kind = values.get("kind")
        return KernelMeaning(
            is_collective=collective,
            kind=collective_kind(subject.text.rpartition("::")[2]) if kind is None else kind,
            family=family,
            protocol=protocol[1].upper() if protocol else "",
            is_task=values.get("task", False),
            is_fused=fused,
        )

    def _judge_copy(self, name: str) -> CopyMeaning:
        index = self._index("copy")
        number = index.find(copy_subject(name))
        if number is None:
            return _NO_COPY
        values = index.rules[number].values
        pageable = values.get("pageable")
        pinned = values.get("pinned")
        return CopyMeaning(
            direction=values["direction"],
            pageable=not pinned if pageable is None and pinned is not None else pageable,
            pinned=not pageable if pinned is None and pageable is not None else pinned,
        )

    def _judge_host(self, name: str) -> HostMeaning:
        subject = host_subject(name)
        index = self._index(*_HOST_THEMES)
        numbers = index.find_each(subject)
        if not numbers:
            return _NO_HOST
        kind, backend = _operation(index, numbers, subject)
        key = (numbers, kind, backend)
        meaning = self._host_meanings.get(key)
        if meaning is None:
            meaning = _host_meaning([index.rules[number] for number in numbers], kind, backend)
            self._host_meanings[key] = meaning
        return meaning

    def _judge_step(self, name: str) -> StepMeaning | None:
        index = self._index("step")
        subject = host_subject(name)
        number = index.find(subject)
        if number is None:
            return None
        values = index.rules[number].values
        found = index.match(number, subject.text)
        digits = (found.groupdict().get("ordinal") or "") if found else ""
        ordinal = int(digits) if digits.isdecimal() and len(digits) <= _ORDINAL_DIGITS else None
        return StepMeaning(kind=values["kind"], ordinal=ordinal, priority=values["priority"])


@functools.cache
def _our_rules(theme: str, text: str) -> tuple[Rule, ...]:
    """Return the rules of one of our files, parsed once a process: it takes longer than reading a small trace."""
    return tuple(parse_rules(text, _FILES[theme], themes=(theme,)))


@functools.cache
def _our_index(ours: tuple[tuple[str, str], ...]) -> RuleIndex:
    """Return the index of our rules alone, given as themes with the texts of their files."""
    return RuleIndex(rule for theme, text in ours for rule in _our_rules(theme, text))


def _operation(index: RuleIndex, numbers: Iterable[int], subject: Subject) -> tuple[str, str]:
    """Return the kind and the backend of the collective that a host event issues, empty where it issues none."""
    for number in numbers:
        rule = index.rules[number]
        if rule.theme == "operator" and rule.values.get("collective", True):
            kind = rule.values.get("kind", collective_kind(subject.text.rpartition(":")[2]))
            found = index.match(number, subject.text)
            named = found.groupdict().get("backend") if found else None
            return kind, rule.values.get("backend", named or "")
    return "", ""


def _host_meaning(rules: Sequence[Rule], kind: str, backend: str) -> HostMeaning:
    values = {rule.theme: rule.values for rule in rules}
    activity = values.get("activity", {})
    obj = activity.get("object", "")
    name = next((rule.name for rule in rules if rule.theme == "activity"), "")
    return HostMeaning(
        object=obj,
        activity=activity.get("activity", name) if obj else "",
        call=values.get("call", {}).get("call", ""),
        stage=values.get("stage", {}).get("stage", "input" if obj == "input" else ""),
        is_collective_op="operator" in values and values["operator"].get("collective", True),
        kind=kind,
        backend=backend,
        loader_workers=activity.get("workers"),
        carries=values.get("carrier", {}).get("carries", ""),
    )


def _kept(answers: dict[str, _Answer], name: str, judge: Callable[[str], _Answer]) -> _Answer:
    """Return the kept answer for a name, or judge and keep it; the store is bounded in number and size."""
    try:
        return answers[name]
    except KeyError:
        answer = judge(name)
    if len(name) <= _KEPT_NAME_CHARS:
        if len(answers) >= _KEPT_ANSWERS:
            answers.clear()
        answers[name] = answer
    return answer


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: expected a readable TOML file with rules, found: {error}. Check the path given to --rules"
        raise UsageError(msg) from None
