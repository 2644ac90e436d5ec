"""Other ways to read a statement, each of which is common usage: tried before anybody is accused."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from longpole.claims import relations
from longpole.claims.algebra import solve
from longpole.claims.figures import Figure
from longpole.claims.models import NAME_SHARE, described, described_forms
from longpole.costs.kv_cache import kv_bytes_per_token
from longpole.costs.parameters import parameters
from longpole.hardware.matmul_ceilings import find_ceiling

if TYPE_CHECKING:
    from longpole.claims.algebra import Relation
    from longpole.claims.statement import Statement
    from longpole.hardware.matmul_ceilings import MatmulCeiling

DEGREES: Final = ("tp", "pp", "cp")
_PEAK_SHARE: Final = 0.0005  # 989, 989.4 and 989.5 are all in use for one device
_BATCH_SHARE: Final = 0.03  # rates and times that a degree is derived from are rounded
_SPARSE_SHARE: Final = 0.01
_DTYPES: Final = (
    ("fp8", ("fp8", "mxfp8", "float8", "e4m3", "e5m2")),
    ("bf16", ("bf16", "bfloat16")),
    ("fp16", ("fp16", "float16", "half")),
    ("int8", ("int8",)),
)
SPLIT_TEXT: Final = "TP · PP"  # of a TP that stands for both, where only their product is stated
ASSUMED: Final = Figure.exactly(1.0)  # a degree that is not stated, told from a stated one by being this object
_LARGEST_BINARY: Final = 1e9
_COUNT_SHARE: Final = 0.02  # biases, norms and positions, which a claim's dimensions leave open
_TOKENS: Final = ("tokens_step", "tokens")
WITH_INTERRUPTIONS: Final = (
    (relations.TRAINING, relations.TRAINING_AND_MORE),
    (relations.TRAINING_OF_DEVICES, relations.TRAINING_OF_DEVICES_AND_MORE),
    (relations.STEPS_TIME, relations.STEPS_TIME_AND_MORE),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A statement as it may be meant.

    Attributes:
        statement: With its figures renamed, scaled or added to.
        relations: Those whose form depends on the reading.
        says: What is read differently, for a reader; empty for the usual reading.
        cost: How far it is from the usual one.
        assumed: What is taken for granted.
        instead: Relations that stand in place of usual ones.
    """

    statement: Statement
    relations: tuple[Relation, ...]
    says: tuple[str, ...] = ()
    cost: int = 0
    assumed: tuple[str, ...] = field(default=())
    instead: tuple[tuple[Relation, Relation], ...] = ()


def usual_reading(statement: Statement) -> Reading:
    """Return the statement as it is read without any doubt in it."""
    figures = dict(statement.figures)
    assumed: list[str] = []
    if "utilisation" in figures and "mfu" not in figures:
        figures["mfu"] = figures.pop("utilisation")
    if "increase" in figures and "speedup" not in figures:
        increase = figures.pop("increase")
        low, high = (tuple(1 + end for end in ends) for ends in (increase.low, increase.high))
        figures["speedup"] = Figure(increase.text, 1 + increase.value, low, high)  # type: ignore[arg-type]
    _add_degrees(figures, assumed)
    _add_peak(statement, figures, assumed)
    _add_dimensions(statement, figures)
    _add_collective(statement, figures, assumed)
    read = replace(statement, figures=figures)
    instead = WITH_INTERRUPTIONS if "goodput" in figures else ()
    return Reading(statement=read, relations=_forms(read), assumed=tuple(assumed), instead=instead)


def _forms(
    statement: Statement, devices: Relation = relations.DEVICES, total: Relation = relations.AGGREGATE
) -> tuple[Relation, ...]:
    found = [devices, total]
    if "counted_params" in statement.figures:
        found.append(relations.PARAMETERS)
    if "counted_active" in statement.figures:
        found.append(relations.ACTIVE)
    if "counted_kv_token" in statement.figures:
        found.append(relations.KEY_VALUE)
    if "device_peak" in statement.figures:
        found.append(relations.PEAK)
    if "message" in statement.figures and statement.words.get("collective", "all_reduce") == "all_reduce":
        found.append(relations.MESSAGE)
        if {"group", "layers"} <= statement.figures.keys():
            found.append(relations.ALL_REDUCES)
    elif "message" not in statement.figures and "group" in statement.figures:
        found.append(relations.MESSAGE)
    return tuple(found)


def _add_dimensions(statement: Statement, figures: dict[str, Figure]) -> None:
    """Add layers and hidden size of a model that is known by name."""
    _add_counted(statement, figures)
    if statement.model is None:
        return
    for name in ("layers", "hidden"):
        figures.setdefault(name, Figure.exactly(float(getattr(statement.model, name)), f"of {statement.model.name}"))


def _add_counted(statement: Statement, figures: dict[str, Figure]) -> None:
    """Add what the model's dimensions say of stated parameters and of a token's cache."""
    if "params" in figures and not statement.nominal:
        if statement.model is not None:
            total = float(parameters(statement.model).total)
            figures["counted_params"] = Figure.exactly(total, statement.model.name).widened(NAME_SHARE)
        elif forms := described_forms(figures, statement.model_name):
            totals = sorted(parameters(form).total for form in forms)
            counted = Figure.between(totals[0], totals[-1], "its dimensions").widened(_COUNT_SHARE)
            figures["counted_params"] = counted
    model = statement.model
    if model is not None and model.experts is not None and "active_params" in figures:
        active = Figure.exactly(float(parameters(model).active), model.name)
        figures["counted_active"] = active.widened(NAME_SHARE)
    model = model or described(figures, statement.model_name)
    known = statement.model is not None or "kv_heads" in figures or "heads" in figures
    if {"kv_token", "kv_cache"} & figures.keys() and model is not None and known:
        element = figures["element_bytes"].value if "element_bytes" in figures else 2.0
        if "kv_cache" in figures and not {"gbs", "mbs"} & figures.keys():
            figures["gbs"] = Figure.exactly(1.0)
        elif "kv_cache" in figures and "gbs" not in figures:
            figures["gbs"] = figures["mbs"]
        figures["counted_kv_token"] = Figure.exactly(kv_bytes_per_token(model, element), model.name)


def _add_degrees(figures: dict[str, Figure], assumed: list[str]) -> None:
    """Take degrees that are not stated for 1 where others are."""
    divided = {*DEGREES, "dp", "model_parallel"} & figures.keys()
    if not divided and not ("gpus" in figures and {"mbs", "ga", "batch_per_dp"} & figures.keys()):
        return
    if "model_parallel" in figures:
        if "tp" not in figures and "pp" not in figures:
            figures["tp"] = Figure.exactly(figures["model_parallel"].value, SPLIT_TEXT)
            figures["pp"] = Figure.exactly(1.0)
        missing = [name for name in ("cp",) if name not in figures]
    else:
        missing = [name for name in DEGREES if name not in figures]
    for name in missing:
        figures[name] = ASSUMED
    if missing and ("dp" in figures or "ga" in figures or "gbs" in figures):
        assumed.append(f"{', '.join(name.upper() for name in missing)} not stated: taken as 1")


def dtype_of(statement: Statement) -> str:
    """Return the data type that is stated, as the device table names it; empty where none is."""
    stated = statement.words.get("dtype", "").lower().replace("-", "").replace("_", "")
    return next((name for name, spellings in _DTYPES if any(one in stated for one in spellings)), "")


def ceiling_of(statement: Statement) -> MatmulCeiling | None:
    """Return the measured ceiling of a utilisation, where the peak that it is a share of is that of the device."""
    if statement.device is None or "device_peak" in statement.figures:
        return None
    return find_ceiling(statement.device.name, dtype_of(statement) or "bf16")


def _add_peak(statement: Statement, figures: dict[str, Figure], assumed: list[str]) -> None:
    device = statement.device
    if device is None:
        return
    stated = statement.words.get("dtype", "")
    dtype = dtype_of(statement) or stated or next((one for one in ("bf16", "fp16") if one in device.peak_flops), "")
    if dtype not in device.peak_flops:
        assumed.append(f"no {dtype or 'dense'} peak of {device.name} is known: figures against it are not checked")
        return
    peak = Figure.exactly(device.peak_flops[dtype], f"{device.name} {dtype} dense").widened(_PEAK_SHARE)
    if "peak" in figures:
        figures["device_peak"] = peak
    else:
        figures["peak"] = peak
        if not dtype_of(statement):
            assumed.append(f"peak: {dtype} dense of {device.name}, {device.peak_flops[dtype] / 1e12:g} TFLOP/s")


def _add_collective(statement: Statement, figures: dict[str, Figure], assumed: list[str]) -> None:
    if {"mbs", "seq", "hidden"} <= figures.keys():
        figures.setdefault("element_bytes", Figure.exactly(2.0))
    if "tp" in statement.figures and {"message", "mbs"} & figures.keys():
        figures.setdefault("pp", Figure.exactly(1.0))
        figures.setdefault("group", statement.figures["tp"])
    asked = {"comm_s", "algbw", "busbw", "comm_bytes"} & figures.keys()
    if "message" in figures and "collectives" not in figures and asked - {"comm_bytes"}:
        figures["collectives"] = Figure.exactly(1.0)
    factor = bus_factor(statement.words.get("collective", ""), figures.get("group"))
    if factor is not None:
        figures["bus_factor"] = Figure.exactly(factor)
        if "collective" not in statement.words and asked:
            assumed.append("collective not stated: taken as an all-reduce")


def bus_factor(collective: str, group: Figure | None) -> float | None:
    """Return what each link carries of a collective's bytes: nccl-tests, doc/PERFORMANCE.md.

    >>> bus_factor("all_reduce", Figure.exactly(4)), bus_factor("all-gather", Figure.exactly(4))
    (1.5, 0.75)
    """
    name = collective.lower().replace("-", "").replace("_", "").replace(" ", "")
    if name in ("broadcast", "reduce", "sendrecv", "p2p"):
        return 1.0
    if group is None or group.value < 2:
        return None
    share = (group.value - 1) / group.value
    if name in ("", "allreduce"):
        return 2 * share
    return share if name in ("allgather", "reducescatter", "alltoall", "all2all") else None


def other_readings(usual: Reading) -> list[Reading]:
    """Return what else the statement may mean: single readings, then pairs of them."""
    single = [made for make in _READINGS for made in make(usual)]
    found = list(single)
    for number, one in enumerate(single):
        later = {other.says[-1] for other in single[number + 1 :]}
        found += [other for make in _READINGS for other in make(one) if other.says[-1] in later]
    return found


def _as_hardware(reading: Reading) -> list[Reading]:
    figures = dict(reading.statement.figures)
    pairs = {"flops_gpu": "hw_flops_gpu", "mfu": "hfu"}
    if reading.statement.words.get("recompute", "none").lower() != "none":
        pairs["flops_run"] = "hw_flops_run"
    if "hfu" in figures:
        del pairs["mfu"]
    moved = [name for name, other in pairs.items() if name in figures and other not in figures]
    if not moved and ("flops_total" not in figures or "hfu" in figures or "hw_flops_gpu" in figures):
        return []
    for name in moved:
        figures[pairs[name]] = figures.pop(name)
    called_mfu = "mfu" in moved and "utilisation" not in reading.statement.words
    titles = {"flops_gpu": "FLOP/s", "mfu": "MFU", "flops_run": "FLOPs of the training"}
    named = [titles[name] for name in moved] or ["FLOP/s"]
    count = "counts" if named == ["MFU"] else "count"
    says = f"{' and '.join(named)} {count} what is computed again (hardware FLOPs, HFU)"
    forms = tuple(relations.AGGREGATE_HARDWARE if one is relations.AGGREGATE else one for one in reading.relations)
    return [_made(reading, figures, says, 2 if called_mfu else 1, forms)]


def _interruptions(reading: Reading) -> list[Reading]:
    """Read a time in all as that of everything that happened meanwhile, not of steps alone."""
    figures = reading.statement.figures
    if not {"time_s", "gpu_s"} & figures.keys() or "tokens" not in figures or "goodput" in figures or reading.instead:
        return []
    says = "the time in all counts what was no training: interruptions, restarts, evaluation"
    made = _made(reading, dict(figures), says, 1)
    return [replace(made, instead=WITH_INTERRUPTIONS)]


def _binary_tokens(reading: Reading) -> list[Reading]:
    statement = reading.statement
    for name in _TOKENS:
        figure = statement.figures.get(name)
        if figure is None:
            continue
        if name == "tokens" and figure.value >= _LARGEST_BINARY:
            continue  # of a whole training nobody counts in powers of 1024
        letter = next((one for one in ("k", "M", "B") if figure.text.rstrip(" tokens").endswith(one)), "")
        rounded = figure.value >= 1e6 and figure.value % 1e6 == 0
        if name in statement.binary or letter or rounded:
            power = {"k": 1, "K": 1, "B": 3}.get(letter, 2)
            says = f"{figure.text} tokens are counted in powers of 1024"
            return [_made(reading, {**statement.figures, name: figure.scaled(1.024**power)}, says, 1)]
    return []


def _data_parallel(reading: Reading) -> list[Reading]:
    figures = reading.statement.figures
    made = []
    for name, form, says in (
        ("cp", relations.DEVICES_DP_HOLDS_CP, "DP counts the context-parallel ranks"),
        ("ep", relations.DEVICES_TIMES_EP, "DP is that of one expert, beside EP"),
    ):
        if name in figures and figures[name].value > 1 and "dp" in figures and relations.DEVICES in reading.relations:
            forms = tuple(form if one is relations.DEVICES else one for one in reading.relations)
            made.append(_made(reading, dict(figures), says, 1, forms))
    return made


def _unstated_degree(reading: Reading) -> list[Reading]:
    """Read the missing factor of the devices as a degree that is not stated."""
    figures = reading.statement.figures
    if "gpus" not in figures:
        return []
    stated_one = [name for name in ("pp", "cp", "tp") if _is_assumed(reading, name)]
    if not stated_one:
        return []
    dp = figures["dp"].value if "dp" in figures else _dp_of_batch(reading, stated_one)
    if dp is None:
        return []
    product = dp
    for name in DEGREES:
        product *= figures[name].value if name in figures else 1.0
    rest = figures["gpus"].value / product
    if round(rest) <= 1 or abs(rest / round(rest) - 1) > _BATCH_SHARE or figures["gpus"].value % round(rest):
        return []
    name = stated_one[0]
    names = " · ".join(one.upper() for one in ("tp", "pp", "cp") if one in stated_one)
    says = f"{names}, not stated, {'is' if len(stated_one) == 1 else 'together are'} {round(rest)}"
    return [_made(reading, {**figures, name: Figure.exactly(float(round(rest)))}, says, 1)]


def _is_assumed(reading: Reading, name: str) -> bool:
    return any(name.upper() in note for note in reading.assumed if note.endswith("not stated: taken as 1"))


def _dp_of_batch(reading: Reading, unstated: list[str]) -> float | None:
    """Return DP as batch, rate and step time have it, whatever the degrees are that are not stated."""
    figures = {name: figure for name, figure in reading.statement.figures.items() if name not in unstated}
    return solve(figures, [*reading.relations, *relations.USUAL]).value("dp")


def _other_peak(reading: Reading) -> list[Reading]:
    statement = reading.statement
    device = statement.device
    if device is None:
        return []
    figures = statement.figures
    key = "device_peak" if "device_peak" in figures else "peak"
    if key not in figures or (key == "peak" and "peak" not in figures):
        return []
    dtype = dtype_of(statement)
    others = ("bf16",) if dtype == "fp8" else ("fp8", "fp16") if not dtype else ()
    made = []
    for other in others:
        peak = device.peak_flops.get(other)
        if peak is None or figures[key].holds(peak, 0):
            continue
        figure = Figure.exactly(peak, f"{device.name} {other} dense").widened(_PEAK_SHARE)
        dense = device.peak_flops.get("bf16", 0.0)
        sparse = ", which is also the sparse one of bf16" if dense and abs(peak / dense - 2) < _SPARSE_SHARE else ""
        says = f"the peak is the {other} one of {device.name} ({peak / 1e12:g} TFLOP/s){sparse}"
        made.append(_made(reading, {**figures, key: figure}, says, 1))
    return made


def _other_collectives(reading: Reading) -> list[Reading]:
    """Read the count of all-reduces as that of another pass, and the message as gradients."""
    made = []
    figures = dict(reading.statement.figures)
    for usual, other, says in (
        (relations.ALL_REDUCES, relations.ALL_REDUCES_FORWARD, "the collectives are those of the forward pass only"),
        (relations.ALL_REDUCES, relations.ALL_REDUCES_AGAIN, "the collectives include full recomputation"),
        (
            relations.MESSAGE,
            relations.GRADIENTS,
            "the message is a device's gradients, not a micro-batch's activations",
        ),
    ):
        needs = {"collectives"} if usual is relations.ALL_REDUCES else {"params", "tp", "pp", "message"}
        if usual in reading.relations and needs <= figures.keys():
            forms = tuple(other if one is usual else one for one in reading.relations)
            if other is relations.GRADIENTS:
                forms = tuple(one for one in forms if one is not relations.ALL_REDUCES)
            made.append(_made(reading, figures, says, 1, forms))
    return made


_READINGS: Final = (
    _other_collectives,
    _unstated_degree,
    _data_parallel,
    _interruptions,
    _binary_tokens,
    _as_hardware,
    _other_peak,
)


def _made(
    reading: Reading,
    figures: dict[str, Figure],
    says: str,
    cost: int,
    forms: tuple[Relation, ...] | None = None,
) -> Reading:
    return Reading(
        statement=replace(reading.statement, figures=figures),
        relations=reading.relations if forms is None else forms,
        says=(*reading.says, says),
        cost=reading.cost + cost,
        assumed=reading.assumed,
        instead=reading.instead,
    )
