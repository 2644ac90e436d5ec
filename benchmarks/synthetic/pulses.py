"""The plainest large trace: a kernel of 8 µs every 10 µs, a thousand a step; the device is busy 80 % exactly."""

from __future__ import annotations

from benchmarks.synthetic.operators import Kernel
from benchmarks.synthetic.schedule import COMPUTE_STREAM, MAIN, Call, DeviceSpan, HostSpan, Step

N_KERNELS = 1_000
PERIOD_NS = 10_000
KERNEL_NS = 8_000
LAUNCH_NS = 900
KERNEL = Kernel("pulse_kernel(float const*, float*, int)", KERNEL_NS, KERNEL_NS)


def pulse_step() -> Step:
    """Place one step.

        host    |launch|          |launch|
        device        |kernel 8 µs|······|kernel 8 µs|
                0     1           9 µs   11

    Returns:
        A step of 10 ms that begins with its first launch; every kernel lies wholly inside it.
    """
    step = Step(wall_ns=N_KERNELS * PERIOD_NS)
    step.host.append(HostSpan("ProfilerStep#", "user_annotation", MAIN, 0, step.wall_ns))
    for place in range(N_KERNELS):
        launch_ns = place * PERIOD_NS
        start_ns = launch_ns + 1_000
        span = DeviceSpan("kernel", KERNEL.name, COMPUTE_STREAM, start_ns, start_ns + KERNEL_NS, KERNEL)
        step.calls.append(Call("cudaLaunchKernel", MAIN, launch_ns, launch_ns + LAUNCH_NS, 0, span))
    return step
