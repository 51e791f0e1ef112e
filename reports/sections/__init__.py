"""The sections of a report, as blocks."""
