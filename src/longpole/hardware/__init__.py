"""What devices and links can do: data rows with their sources, and a look-up that refuses what it does not know."""
