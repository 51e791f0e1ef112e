"""The error of a cluster that cannot be used."""

from __future__ import annotations


class ClusterError(Exception):
    """A cluster cannot be used, or not for this run; the message names the worker and says why. Exit code 2."""
