"""Recordings before and after a change, several fresh runs a side, for `longpole verify`. README.md says how."""
