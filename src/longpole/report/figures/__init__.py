"""Figures for papers and reviews, one a file, drawn by Matplotlib; the same in a notebook."""
