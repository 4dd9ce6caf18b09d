"""Stacks of many ranks: read from files, compared, and told as one finding."""
