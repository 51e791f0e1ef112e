"""Slices of recordings."""

JOB = """
name: sliced
like: healthy-compact
training: {steps: 3, model: {layers: 2}}
layout: {ranks: 1}
causes:
  - unfused-swiglu
  - slow-data-loader: {loading_ns: 30000000}
"""
"""A small job whose problems have places in the recording, for `advisor_core.sample.job_from`."""
