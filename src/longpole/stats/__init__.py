"""Medians, percentiles and means; what compares samples is in the modules beside this one, and loads NumPy."""

from longpole.stats.summary import mean_ns, median_ns, percentile_ns

__all__ = ["mean_ns", "median_ns", "percentile_ns"]
