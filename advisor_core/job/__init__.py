"""Analyses that need all ranks of a job."""
