"""The command line: `paceline`."""
