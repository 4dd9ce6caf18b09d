"""First signals: one small rule for each thing an on-call engineer would notice in a bundle.

docs/signals.md says of each rule what it needs. A rule claims, stays quiet, or says that it
could not look; only a rule that looked can rule something out.
"""
