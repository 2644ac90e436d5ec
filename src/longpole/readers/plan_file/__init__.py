"""Plans as a person writes them: TOML, checked key by key against one table."""
