"""A report and its traces in the Perfetto viewer's own format: bytes, packets, lanes, and what is drawn on them."""
