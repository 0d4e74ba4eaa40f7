"""TELL: hints that there is something to look at; they may be lost, doubled or late, and looking is the guarantee."""
