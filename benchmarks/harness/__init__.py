"""Measuring whole commands.

`process` runs one and watches it, `workloads` holds what they read, `trial` compares, `tables` shows.
"""
