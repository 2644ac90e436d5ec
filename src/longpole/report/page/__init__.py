"""The page: one HTML file that works offline; charts are SVG, the timeline is a canvas drawn by one script."""
