"""Charts as hand-written SVG: no script, no dependency, readable in print, in the dark and without colour.

Colour comes from classes that the style sheet defines (`f-compute`, `f-communication`, ...), each with its own pattern,
so that a chart reads the same in grey. Every mark has a `<title>`; above `MAX_MARKS` marks a chart is aggregated and
its note says how.
"""
