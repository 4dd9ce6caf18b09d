"""Replay: the same requests again, to a target that may be harmed; pure, nothing here sends.

Recorded requests become a plan (``plan``), the player's outcomes become a verdict (``verdict``).
"""
