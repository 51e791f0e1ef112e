"""The example's own test, as a plugin author would write it."""

from __future__ import annotations

from advisor_plugin_hello.short_kernels import kernel_lengths, short_kernels

from advisor_core.api.testing import fact_store, measure, table


def test_counts_short_kernels() -> None:
    rows = [{"start_us": 10 * n, "duration_us": length, "core": "AI_CORE"} for n, length in enumerate((1, 2, 9, 3))]
    store = fact_store(facts=[kernel_lengths], kernels=table("kernels", rows))
    observed = measure(short_kernels, store, short=5_000)
    measured = observed.frame.iloc[0]
    assert (measured["kernels"], measured["short_share"], measured["short_ns"]) == (4, 0.75, 6_000)
    durations, kernels = short_kernels.evidence_of(observed, 0)
    assert durations.rows[0] == {"length_ns": 1_000, "count": 1} and durations.units["length_ns"] == "ns"
    assert kernels.rows.tolist() == [0, 1, 3]
