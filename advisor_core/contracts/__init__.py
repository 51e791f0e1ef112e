"""Types that the packages of the host exchange: tables, facts, profiles, advisors, ledger paths, registries."""
