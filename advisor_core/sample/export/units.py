"""Durations in the units of the tables."""

from __future__ import annotations


def us(ns: int) -> float:
    """A duration in us."""
    return ns / 1000


def ms(ns: int) -> float:
    """A duration in ms."""
    return ns / 1_000_000
