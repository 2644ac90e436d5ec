"""Exports of Nsight Systems: an SQLite database for each report (`nsys export --type sqlite`)."""
