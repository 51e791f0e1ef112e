"""Formats that programs read: code scanning, test reports, annotations of a pipeline, and one line per finding.

They are written where ``--format`` names them; text in them is plain, without the markup of a rule.
"""
