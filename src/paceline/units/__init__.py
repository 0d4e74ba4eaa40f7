"""Units of work that more than one door needs: each is a function of a transaction."""
