"""Operation tables: sniff (whether a file is one) · decode (bytes to columns) · check (columns to records)."""
