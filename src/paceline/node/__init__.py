"""THE LOOPS, one per file: read, decide, write, next delay."""
