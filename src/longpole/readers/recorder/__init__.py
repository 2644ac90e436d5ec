"""Span files of the recorder (`longpole.spans/1`): decode lines, join the processes of a rank, lower into tables."""
