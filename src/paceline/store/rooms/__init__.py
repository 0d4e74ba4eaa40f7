"""The store's verbs, grouped by what they are about."""
