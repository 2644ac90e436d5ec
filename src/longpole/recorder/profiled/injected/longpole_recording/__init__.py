"""Records some steps of a program that knows nothing of it.

arming    waits for torch to be imported
session   decides: counts steps, opens the window, closes it, says what came of it
boundaries where a step ends: the optimizer's steps, or the calls of a model
window    the profiler, from its warm-up to its last step
endings   a window that is still open when the program ends, is told to end, or hangs
others    a profiler that the program uses itself
trace_file where the trace is kept: whole or not at all, and never over another one
"""
