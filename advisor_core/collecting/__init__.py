"""Advice on how to profile: which options of a profiler record what a rule lacks, and what they cost."""
