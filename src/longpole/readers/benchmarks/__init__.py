"""Results of other benchmark programs, as run records: pytest-benchmark, hyperfine, asv."""
