"""What the rooms of the host exchange: tables, facts, profiles, advisors, ledger paths, registries."""
