"""The registry of names: what every API, variable, option, flag and command that a text may name is, and where that is
written. Texts of rules are checked against it, and the engine asks it which settings exclude each other."""
