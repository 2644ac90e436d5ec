"""Checks of the repository's own rules: what no linter knows. `python -m tools.run_checks` runs them all."""
