"""Does the advisor find what is wrong? Simulated jobs with known causes, and what is said about them.

The truth of a cause is how much shorter a step becomes when the simulator leaves the cause out: it owes nothing to
rules. What rules ought to say is in :mod:`.expectations`. ``python -m tests.diagnosis`` runs all of it, prints the
tables and writes ``docs/diagnosis.md``; the tests run a part.
"""
