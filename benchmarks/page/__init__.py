"""How fast the page paints and pans, in a real browser."""
