"""Whether a change did what it was made for: one question a module, and `judge` brings the answers together."""
