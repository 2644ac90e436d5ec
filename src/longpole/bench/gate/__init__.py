"""The gate: two sides of processes, what is gated of them, where a change lies, and what may be behind it."""
