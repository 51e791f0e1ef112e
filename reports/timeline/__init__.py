"""A timeline: what lies where in time, as a trace for viewers of traces and as a page to look into.

Both are written from the same lanes (`reports.timeline.lanes`), so that they cannot disagree.
"""
