"""Declared events: decode (JSON, TOML or CSV to raw events with their lines) · check (raw events to declared ones)."""
