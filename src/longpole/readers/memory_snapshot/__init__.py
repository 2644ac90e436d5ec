"""Snapshots of PyTorch's caching allocator, as pickle or JSON."""
