"""Stored forms, without the means to measure them: what a cache or another program reads."""
