"""The journal of changes: its lines, new entries, what they add up to, and finding out whether something was tried."""
