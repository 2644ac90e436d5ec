"""The process that measures a step: `python -m longpole.bench.step_process FILE.py::NAME`, started by `bench run`.

It loads the file, sets seeds, checks a result, warms up, finds out how many calls make a sample that a clock can tell,
and takes samples. What it finds goes line by line to a file in the folder that `LONGPOLE_RECORD` names. It loads
nothing heavy of its own: what the step imports is all that there is.
"""

from __future__ import annotations

import importlib.util
import os
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from longpole.bench.conditions import Reading, conditions_between, flags_of, read_now, watched_files
from longpole.bench.step import MARK, StepOptions
from longpole.bench.step_file import STEP_FILE, CheckLine, ErrorLine, FactsLine, SampleLine
from longpole.records.credentials import redact
from longpole.settings import Settings
from longpole.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longpole.bench.step_file import StepLine

SEED_VARIABLE: Final = "LONGPOLE_SEED"
SAMPLES_VARIABLE: Final = "LONGPOLE_BENCH_SAMPLES"
WARMUP_VARIABLE: Final = "LONGPOLE_BENCH_WARMUP"
FOLDER_VARIABLE: Final = "LONGPOLE_RECORD"

SAMPLE_MIN_NS: Final = NS_PER_MS
"""A sample takes at least so long: reading the clock, some 100 ns with its call, is then a ten-thousandth of it."""

SAMPLES_MIN: Final = 5
SAMPLES_MAX: Final = 100
SAMPLING_NS: Final = NS_PER_S
"""Without a number of samples, as many as fit into this, within those bounds."""

_CALLS_MAX: Final = 1 << 24
_FAILED: Final = 1


class _StepError(Exception):
    """Why the step cannot be measured, in words for the user."""


def main(argv: Sequence[str]) -> int:
    """Measure the step that is named, and return the exit code: 1 where it could not be measured to its end."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if len(argv) != 1 or folder is None:
        sys.stderr.write("started by `longpole bench run FILE.py::NAME`; not meant to be called by hand\n")
        return 2
    with (Path(folder) / STEP_FILE).open("ab", buffering=0) as file:
        writer = _Writer(file)
        try:
            _measure(argv[0], writer)
        except _StepError as error:
            writer.write(ErrorLine(redact(str(error))))
            return _FAILED
        except Exception as error:  # noqa: BLE001 - whatever the user's code raises is what there is to report
            import traceback

            traceback.print_exc()
            writer.write(ErrorLine(redact(f"the step raised {type(error).__name__}: {error}")))
            return _FAILED
    return 0


class _Writer:
    """Writes a line at once, so that a process that is killed leaves what it had."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._encoder = msgspec.json.Encoder()

    def write(self, line: StepLine) -> None:
        self._file.write(self._encoder.encode(line) + b"\n")


def _measure(target: str, writer: _Writer) -> None:
    step, options = load_step(target)
    seeds = set_seeds(int(os.environ.get(SEED_VARIABLE, "42")))
    state = () if options.setup is None else (options.setup(),)
    facts: dict[str, Any] = {"seeds": seeds, "device": _device()}
    facts |= {"items": options.items, "item_kind": options.item_kind} if options.items is not None else {}
    writer.write(FactsLine(facts))
    _check(options, step(*state), writer)

    def call() -> Any:
        return step(*state)

    sampler = Sampler(call)
    sampler.calibrate()
    writer.write(FactsLine({"calls_per_sample": sampler.calls}))
    warmup = int(os.environ.get(WARMUP_VARIABLE) or options.warmup)
    for _ in range(warmup):
        writer.write(sampler.sample(left_out="warm-up"))
    wanted = os.environ.get(SAMPLES_VARIABLE) or options.samples
    for _ in range(int(wanted) if wanted else sampler.fitting()):
        writer.write(sampler.sample())
    _check(options, sampler.result, writer)


def load_step(target: str) -> tuple[Callable[..., Any], StepOptions]:
    """Load a file and return its function with its options; those of a function that is not marked are the defaults.

    Raises:
        _StepError: There is no such file or function.
    """
    name, _, function = target.rpartition("::")
    path = Path(name).resolve()
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        msg = f"{name}: expected a Python file with a function {function}"
        raise _StepError(msg)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    step = getattr(module, function, None)
    if not callable(step):
        marked = sorted(key for key, value in vars(module).items() if hasattr(value, MARK))
        msg = f"{name}: no function is called {function}" + (f"; marked are {', '.join(marked)}" if marked else "")
        raise _StepError(msg)
    return step, getattr(step, MARK, StepOptions())


def set_seeds(seed: int) -> dict[str, int]:
    """Seed the generators of what is loaded, and say which: library -> seed."""
    random.seed(seed)
    seeded = {"random": seed}
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        numpy.random.seed(seed % (1 << 32))
        seeded["numpy"] = seed
    if torch is not None:
        torch.manual_seed(seed)
        seeded["torch"] = seed
    return seeded


class Sampler:
    """Takes samples of a call, with all work of the device inside each.

    Attributes:
        calls: Calls of one sample.
        result: What the last call returned.
    """

    def __init__(self, call: Callable[[], Any], clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self._call = call
        self._clock = clock
        self._paths = watched_files()
        self._settings = Settings()
        self._last_ns = 0
        self.calls = 1
        self.result: Any = None

    def calibrate(self) -> None:
        """Double the calls of a sample until it takes `SAMPLE_MIN_NS`."""
        while self._timed()[1] < SAMPLE_MIN_NS and self.calls < _CALLS_MAX:
            self.calls *= 2

    def fitting(self) -> int:
        """Return how many samples fit into `SAMPLING_NS`."""
        return min(max(SAMPLING_NS // max(self._last_ns, 1), SAMPLES_MIN), SAMPLES_MAX)

    def sample(self, left_out: str = "") -> SampleLine:
        """Take a sample, and what the machine was like meanwhile; reading that is not part of it."""
        before = read_now(self._paths)
        cpu_before = time.process_time_ns()
        start_ns, duration_ns = self._timed()
        cpu_ns = time.process_time_ns() - cpu_before
        conditions = _conditions(before, read_now(self._paths), cpu_ns)
        return SampleLine(start_ns, duration_ns, self.calls, left_out, conditions, flags_of(conditions, self._settings))

    def _timed(self) -> tuple[int, int]:
        call, result = self._call, None
        synchronize()
        start_ns = self._clock()
        for _ in range(self.calls):
            result = call()
        synchronize()
        self._last_ns = self._clock() - start_ns
        self.result = result
        return start_ns, self._last_ns


def _conditions(before: Reading, after: Reading, cpu_ns: int) -> dict[str, float]:
    found = conditions_between(before, after, cpu_ns=cpu_ns)
    found.pop("load_1min", None)  # says nothing of a moment
    return found


def synchronize() -> None:
    """Wait until the current CUDA device has done what it was given; at once where torch uses none."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _device() -> str:
    torch = sys.modules.get("torch")
    return "cuda" if torch is not None and torch.cuda.is_initialized() else "cpu"


def _check(options: StepOptions, result: object, writer: _Writer) -> None:
    """Ask whether a result is right, before any time counts.

    Raises:
        _StepError: It is not.
    """
    if options.correct is None:
        return
    name = getattr(options.correct, "__name__", "correct").replace("<lambda>", "correct")
    try:
        answer = options.correct(result)
        says = "the step's result is wrong" if answer is False or (answer is not None and not answer) else ""
    except AssertionError as error:
        says = str(error) or "the step's result is wrong"
    writer.write(CheckLine(name, redact(says)))
    if says:
        msg = f"check {name} failed: {says}"
        raise _StepError(msg)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
