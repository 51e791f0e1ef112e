"""The registry of names: every API, variable, option, flag and command that a text may name, with its meaning and
source. Texts of rules are checked against it, and the engine asks it which settings exclude each other."""
