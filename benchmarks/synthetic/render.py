"""Write a placed step down as Kineto does: once into a template, then as often as wanted with other times and numbers.

A template is a text with `%d` places. Each place takes a counter of the whole file (the step's start in µs, the
operators, correlations, sequence numbers and steps so far) plus its own offset; all other text never changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.synthetic.operators import CALLBACK_IDS
from benchmarks.synthetic.schedule import AUTOGRAD, COLLECTIVE_STREAM, COMPUTE_STREAM, Call, DeviceSpan, HostSpan, Step

TIME, OPERATOR, CORRELATION, SEQUENCE, STEP = range(5)
Counters = tuple[int, int, int, int, int]
PROCESS_ID = 4_200
AUTOGRAD_THREAD_OFFSET = 977
FIRST_STEP = 100


@dataclass(frozen=True)
class Dialect:
    """How one generation of Kineto writes.

    `modern` (2024 on): times in µs with three decimals, counted from `baseTimeNanoseconds`; `External id` of device
    rows is the operator's; collectives carry their metadata; annotations are repeated on the device's rows. Else
    (2022): whole µs of the epoch; `External id` of device rows is the correlation; flows are `async_cpu_to_gpu`.
    """

    modern: bool

    def flow(self) -> tuple[str, str]:
        """Give category and name of the flow from a launch to its device row."""
        return ("ac2g", "ac2g") if self.modern else ("async_cpu_to_gpu", "async_gpu")

    def duration(self, length_ns: int) -> str:
        """Write a duration."""
        return f"{length_ns // 1000}.{length_ns % 1000:03d}" if self.modern else f"{length_ns // 1000}"


@dataclass(frozen=True)
class Block:
    """A text with places for numbers, and what each place takes: (counter, offset)."""

    template: str
    places: tuple[tuple[int, int], ...]
    n_events: int

    def fill(self, counters: Counters) -> str:
        """Write the block for these counters."""
        return self.template % tuple([counters[which] + offset for which, offset in self.places])


@dataclass
class Draft:
    """A block in the making."""

    dialect: Dialect
    parts: list[str] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)
    n_events: int = 0

    def text(self, text: str) -> None:
        """Append text that never changes."""
        self.parts.append(text.replace("%", "%%"))

    def number(self, counter: int, offset: int) -> None:
        """Append a place for a number."""
        self.parts.append("%d")
        self.places.append((counter, offset))

    def time(self, at_ns: int) -> None:
        """Append a place for a time, given from the step's start."""
        self.number(TIME, at_ns // 1000)
        if self.dialect.modern:
            self.text(f".{at_ns % 1000:03d}")

    def begin(self, category: str, name: str, place: tuple[int, int], start_ns: int, end_ns: int) -> None:
        """Append the head of a complete event, up to its opened arguments.

        Args:
            category: of the event.
            name: of the event; one that ends in `#` gets the step's number.
            place: process and thread.
            start_ns: from the step's start.
            end_ns: from the step's start.
        """
        self.n_events += 1
        self.text(f'  {{\n    "ph": "X", "cat": "{category}", "name": "{name}')
        if name.endswith("#"):
            self.number(STEP, 0)
        self.text(f'", "pid": {place[0]}, "tid": {place[1]},\n    "ts": ')
        self.time(start_ns)
        self.text(f', "dur": {self.dialect.duration(end_ns - start_ns)},\n    "args": {{\n      ')

    def end(self) -> None:
        """Close arguments and event."""
        self.text("\n    }\n  },\n")

    def arrow(
        self, phase: str, kind: tuple[str, str], number: tuple[int, int], place: tuple[int, int], at_ns: int
    ) -> None:
        """Append one end of a flow.

        Args:
            phase: `s` where it starts, `f` where it ends.
            kind: category and name.
            number: counter and offset of its id.
            place: process and thread.
            at_ns: from the step's start.
        """
        self.n_events += 1
        self.text(f'  {{\n    "ph": "{phase}", "id": ')
        self.number(*number)
        self.text(f', "pid": {place[0]}, "tid": {place[1]}, "ts": ')
        self.time(at_ns)
        bound = ', "bp": "e"' if phase == "f" else ""
        self.text(f',\n    "cat": "{kind[0]}", "name": "{kind[1]}"{bound}\n  }},\n')

    def finish(self) -> Block:
        """Freeze the block."""
        return Block("".join(self.parts), tuple(self.places), self.n_events)


@dataclass(frozen=True)
class Identity:
    """Whose trace it is."""

    rank: int
    n_ranks: int

    @property
    def process(self) -> int:
        """Give the process's number."""
        return PROCESS_ID + self.rank

    def thread(self, thread: int) -> int:
        """Give the number of a host thread."""
        return self.process + (AUTOGRAD_THREAD_OFFSET if thread == AUTOGRAD else 0)

    def collective(self, elements: int) -> str:
        """Write a collective's metadata as torch 2.4 and later attach it."""
        ranks = list(range(self.n_ranks))
        return (
            f'"Collective name": "allreduce", "In msg nelems": {elements}, "Out msg nelems": {elements}, '
            f'"Group size": {self.n_ranks}, "dtype": "Float", "In split size": "[]", "Out split size": "[]", '
            f'"Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "{ranks}"'
        )


class StepRenderer:
    """Turns placed steps of one rank into blocks."""

    def __init__(self, dialect: Dialect, identity: Identity) -> None:
        """Remember how to write, and for whom.

        Args:
            dialect: the generation of Kineto.
            identity: the rank.
        """
        self._dialect = dialect
        self._identity = identity

    def host_block(self, step: Step) -> Block:
        """Write the operators and annotations of all host threads, in the order in which they began."""
        draft = Draft(self._dialect)
        order = sorted(range(len(step.host)), key=lambda row: (step.host[row].start_ns, row))
        for row in order:
            span = step.host[row]
            place = (self._identity.process, self._identity.thread(span.thread))
            draft.begin(span.category, span.name, place, span.start_ns, span.end_ns)
            if self._dialect.modern:
                self._modern_host_args(draft, row, span)
            else:
                self._old_host_args(draft, row, span)
            draft.end()
            if self._dialect.modern and span.sequence is not None:
                phase = "f" if span.answers_forward else "s"
                draft.arrow(phase, ("fwdbwd", "fwdbwd"), (SEQUENCE, span.sequence + 1), place, span.start_ns)
        return draft.finish()

    def device_block(self, step: Step) -> Block:
        """Write runtime calls, device rows and their flows, in the order in which a recorder gets to know their end."""
        draft = Draft(self._dialect)
        known_ns = [call.launched.end_ns if call.launched else call.end_ns for call in step.calls]
        for row in sorted(range(len(step.calls)), key=lambda row: (known_ns[row], row)):
            call = step.calls[row]
            if call.launched is not None:
                self._device_row(draft, row, call, call.launched)
            self._runtime_row(draft, row, call)
        if self._dialect.modern:
            self._annotation_rows(draft, step)
        return draft.finish()

    def _modern_host_args(self, draft: Draft, row: int, span: HostSpan) -> None:
        draft.text('"External id": ')
        draft.number(OPERATOR, row + 1)
        draft.text(',"Record function id": ')
        draft.number(OPERATOR, row)
        if span.elements:
            draft.text(f", {self._identity.collective(span.elements)}")
        elif span.dims != "[]":
            draft.text(f', "Input type": {span.types}, "Input Dims": {span.dims}')
        if span.sequence is not None:
            draft.text(', "Sequence number": ')
            draft.number(SEQUENCE, span.sequence)
            draft.text(f', "Fwd thread id": {1 if span.answers_forward else 0}')
        draft.text(', "Ev Idx": ')
        draft.number(OPERATOR, row)

    def _old_host_args(self, draft: Draft, row: int, span: HostSpan) -> None:
        draft.text('"Trace name": "PyTorch Profiler", "Trace iteration": 0,\n      "External id": ')
        draft.number(OPERATOR, row + 1)
        draft.text(',\n      "Profiler Event Index": ')
        draft.number(OPERATOR, row)
        if span.sequence is not None:
            draft.text(f', "Fwd thread id": {1 if span.answers_forward else 0}, "Sequence number": ')
            draft.number(SEQUENCE, span.sequence)
        if span.dims != "[]":
            draft.text(f', "Input Dims": {span.dims}, "Input type": {span.types}')
        draft.text(', "Module Hierarchy": "", "Call stack": ""')

    def _linked(self, draft: Draft, row: int, call: Call) -> None:
        """Append the number under which a row is linked to its operator."""
        draft.text('"External id": ')
        if self._dialect.modern:
            draft.number(OPERATOR, call.op + 1)
        else:
            draft.number(CORRELATION, row)

    def _runtime_row(self, draft: Draft, row: int, call: Call) -> None:
        place = (self._identity.process, self._identity.thread(call.thread))
        draft.begin("cuda_runtime", call.name, place, call.start_ns, call.end_ns)
        self._linked(draft, row, call)
        draft.text(f',\n      "cbid": {CALLBACK_IDS[call.name]}, "correlation": ')
        draft.number(CORRELATION, row)
        draft.end()
        phase = "f" if call.launched is None else "s"
        draft.arrow(phase, self._dialect.flow(), (CORRELATION, row), place, call.start_ns)

    def _device_row(self, draft: Draft, row: int, call: Call, span: DeviceSpan) -> None:
        device = self._identity.rank
        category = {"memcpy": "gpu_memcpy", "memset": "gpu_memset"}.get(span.kind, "kernel")
        draft.begin(category, self._device_name(span), (device, span.stream), span.start_ns, span.end_ns)
        self._linked(draft, row, call)
        draft.text(",\n      ")
        if category == "kernel":
            draft.text('"queued": 0, ')
        draft.text(f'"device": {device}, "context": 1,\n      "stream": {span.stream}, "correlation": ')
        draft.number(CORRELATION, row)
        draft.text(self._device_details(span))
        draft.end()
        draft.arrow("f", self._dialect.flow(), (CORRELATION, row), (device, span.stream), span.start_ns)

    def _device_name(self, span: DeviceSpan) -> str:
        if span.kind != "collective":
            return span.name
        if self._dialect.modern:
            return "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        return "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"

    def _device_details(self, span: DeviceSpan) -> str:
        if span.kind in ("memcpy", "memset"):
            rate = span.size_bytes / max(1, span.end_ns - span.start_ns)
            return f',\n      "bytes": {span.size_bytes}, "memory bandwidth (GB/s)": {rate:.6f}'
        registers, shared_bytes, grid, block = 96, 103_808, "[16, 1, 1]", "[512, 1, 1]"
        if span.kernel is not None:
            kernel = span.kernel
            registers, shared_bytes, grid, block = kernel.registers, kernel.shared_bytes, kernel.grid, kernel.block
        shape = (
            f',\n      "registers per thread": {registers},\n      "shared memory": {shared_bytes},\n      '
            f'"blocks per SM": 9.481482,\n      "warps per SM": 37.925926,\n      "grid": {grid},\n      '
            f'"block": {block},\n      "est. achieved occupancy %": 46'
        )
        if span.kind == "collective" and self._dialect.modern:
            return f"{shape},\n      {self._identity.collective(span.size_bytes)}"
        return shape

    def _annotation_rows(self, draft: Draft, step: Step) -> None:
        """Repeat annotations over the device rows that they launched, as Kineto does since 2023: no device work."""
        for name, stream in (("ProfilerStep#", COMPUTE_STREAM), ("nccl:all_reduce", COLLECTIVE_STREAM)):
            spans = [span for span in step.device_spans() if span.stream == stream]
            groups = [spans] if stream == COMPUTE_STREAM else [[span] for span in spans]
            rows = [row for row, host in enumerate(step.host) if host.name == name]
            for row, group in zip(rows, groups, strict=True):
                start_ns = min(span.start_ns for span in group)
                end_ns = max(span.end_ns for span in group)
                draft.begin("gpu_user_annotation", name, (self._identity.rank, stream), start_ns, end_ns)
                draft.text('"External id": ')
                draft.number(OPERATOR, row + 1)
                draft.end()
