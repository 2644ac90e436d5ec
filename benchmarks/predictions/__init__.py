"""Predictions against reality: pairs of recordings, before and after a real change of the program.

`changes.toml` says what is changed and which what-if stands for it, `workload` is the program, `record` runs it,
`evaluate` predicts each change from the recording before it and compares. docs/concepts/how-good-are-predictions.md is
written from the result.
"""
