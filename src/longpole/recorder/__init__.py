"""Record spans from the user's own program: light to import, cheap to call, safe to kill."""
