"""Bring a name into the forms that rules are written for.

Names come from traces and are hostile: any length, any characters. Everything here looks at no more than the
first `HEAD_CHARS` and the last `TAIL_CHARS` characters and takes time linear in those.
"""

from __future__ import annotations

import re
from typing import Final

HEAD_CHARS: Final = 512
TAIL_CHARS: Final = 256
_JOINT: Final = "\0"

_BRACKETS: Final = re.compile(r"([<>()])")
_BRACKET: Final = re.compile(r"[<(]")
_ANONYMOUS: Final = "(anonymous namespace)::"
_VOID: Final = "void "  # a kernel returns nothing and is no member of a class: the first bracket ends its name
_MANGLED_PART: Final = re.compile(r"(?:St|S[a-z0-9]?_)?(\d{1,3})")
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_API_SUFFIX: Final = re.compile(r"(?:_v\d+|_ptsz|_ptds|_spt)+$")
_API_PREFIXES: Final = ("cu", "hip")
_ASCEND_LAYER: Final = "AscendCL@"
_OBJECT_ADDRESS: Final = " object at 0x"

# Longest and most specific first: "reducescatter" holds "reduce" and "scatter".
_KINDS: Final = (
    ("reducescatter", "reduce_scatter"),
    ("allreduce", "all_reduce"),
    ("allgather", "all_gather"),
    ("alltoall", "all_to_all"),
    ("all2all", "all_to_all"),
    ("dispatch", "dispatch"),
    ("combine", "combine"),
    ("a2a", "all_to_all"),
    ("fcollect", "all_gather"),
    ("broadcast", "broadcast"),
    ("bcast", "broadcast"),
    ("barrier", "barrier"),
    ("batchsendrecv", ""),
    ("sendrecv", ""),
    ("scatter", "scatter"),
    ("gather", "gather"),
    ("reduce", "reduce"),
    ("send", "send_recv"),
    ("recv", "send_recv"),
    ("receive", "send_recv"),
)


def clip(name: str) -> str:
    """Return the part of a name that rules may look at: its first 512 and its last 256 characters."""
    if len(name) <= HEAD_CHARS + TAIL_CHARS:
        return name
    return f"{name[:HEAD_CHARS]}{_JOINT}{name[-TAIL_CHARS:]}"


def function_name(name: str) -> str:
    """Return the function in a kernel's name, in lower case: no return type, template arguments or parameters.

    Only this part is matched, so that a word inside a template argument means nothing. Mangled names give the
    same; a name without brackets is returned whole.

    >>> function_name("void ns::(anonymous namespace)::scale_kernel<AllReduce<int>, 4>(float*, int)")
    'ns::scale_kernel'
    >>> function_name("_ZN4vllm26cross_device_reduce_1stageI6__halfLi8EEEvP8RankData")
    'vllm::cross_device_reduce_1stage'
    """
    text = name[:HEAD_CHARS].replace(_ANONYMOUS, "")
    if text.startswith(_VOID):
        return _BRACKET.split(text, 1)[0][len(_VOID) :].lower()
    if text.startswith("_Z"):
        return _demangled(text)
    if "(" in text or "<" in text:
        outside = _outside_brackets(text).partition("[clone")[0].split()
        while len(outside) > 1 and outside[-1] == "const":
            outside.pop()
        text = outside[-1] if outside else ""
    return text.lower().removesuffix(".kd")


def _outside_brackets(text: str) -> str:
    depth = 0
    kept = []
    for piece in _BRACKETS.split(text):
        if piece in ("<", "("):
            depth += 1
        elif piece in (">", ")"):
            depth = max(depth - 1, 0)
        elif depth == 0:
            kept.append(piece)
    return "".join(kept)


def _demangled(text: str) -> str:
    """Return the function of a mangled name: one identifier, or between `N` and `E` those of its namespaces too."""
    nested = text.startswith("_ZN")
    position = 3 if nested else 2
    parts: list[str] = []
    while (nested or not parts) and (found := _MANGLED_PART.match(text, position)):
        position = found.end() + int(found[1])
        parts.append(text[found.end() : position])
    return "::".join(parts).lower()


def split_words(text: str) -> tuple[str, ...]:
    """Split an annotation into lower-case words; digits and signs separate, capitals begin a word.

    >>> split_words("## copy_batch_to_gpu 3 ##"), split_words("enumerate(DataLoader)")
    (('copy', 'batch', 'to', 'gpu'), ('enumerate', 'data', 'loader'))
    """
    return tuple(map(str.lower, _WORD.findall(text)))


def bare_name(text: str) -> str:
    """Strip what surrounds a name: `## name ##`, a runtime call's version suffix, Ascend's layer.

    >>> bare_name("## forward ##"), bare_name("cudaLaunchKernel_v7000"), bare_name("AscendCL@aclrtMemcpy")
    ('forward', 'cudaLaunchKernel', 'aclrtMemcpy')
    """
    text = text.strip("# ")
    if text.startswith(_API_PREFIXES):
        return _API_SUFFIX.sub("", text)
    return text.removeprefix(_ASCEND_LAYER)


def split_frame(text: str) -> tuple[str, str] | None:
    """Return path and function of a Python frame `path/file.py(12): function`, None for any other name.

    >>> split_frame("torch/utils/data/dataloader.py(631): __next__")
    ('torch/utils/data/dataloader.py', '__next__')
    """
    end = text.rfind("): ")
    if end < 0:
        return None
    begin = text.rfind("(", 0, end)
    if begin < 0 or not text[begin + 1 : end].isdecimal():
        return None
    return text[:begin].replace("\\", "/"), text[end + 3 :]


def builtin_name(text: str) -> str:
    """Return what a `<built-in ...>` frame calls, without the address; empty for any other name.

    >>> builtin_name("<built-in method write of _io.TextIOWrapper object at 0x7f00>")
    'write of _io.TextIOWrapper'
    """
    for opening in ("<built-in function ", "<built-in method "):
        if text.startswith(opening):
            return text[len(opening) :].partition(_OBJECT_ADDRESS)[0].rstrip(">")
    return ""


def collective_kind(operation: str) -> str:
    """Return the kind of collective that an operation's name says, empty where it says none.

    >>> collective_kind("ncclDevKernel_AllReduce_Sum_f32_RING_LL"), collective_kind("_allgather_base_")
    ('all_reduce', 'all_gather')
    >>> collective_kind("ncclDevKernel_SendRecv")
    ''
    """
    compact = operation.lower().replace("_", "").replace("-", "")
    for part, kind in _KINDS:
        if part in compact:
            return kind
    return ""
