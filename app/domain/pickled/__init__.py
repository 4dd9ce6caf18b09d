"""Pickles as data: read without importing, calling or believing anything in them."""

from app.domain.pickled.outcome import Limits, Pickled, Problem
from app.domain.pickled.reading import read_pickle

__all__ = ["Limits", "Pickled", "Problem", "read_pickle"]
