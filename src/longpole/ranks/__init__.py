"""Across ranks: which operations belong together, how the clocks stand to each other, who waited for whom."""
