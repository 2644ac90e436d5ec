"""The words of the design as constants, and the taxonomy of names as TOML rules with their matcher.

`objects` holds the closed lists (objects, idle reasons, stages), `rules/*.toml` says what the names that
profilers write mean, `matcher.Vocabulary` answers for one name. Readers and analyses ask it, nobody else
looks at a name.
"""
