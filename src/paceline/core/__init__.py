"""DECIDE: values in, values out; no clock, chance, database or operating system."""
