"""Traces that no recorder wrote: what a step is made of, when its pieces run, and how Kineto would write them down.

`operators` holds the catalogue, `schedule` places one step in time and knows its figures, `render` turns a placed
step into text, `stream` writes whole files; `pulses` and `copies` are two simpler sources of large files.
"""
