"""The links of all ranks as a matrix, with those that findings call slow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from advisor_core.facts.communication.links import link_speeds
from advisor_core.facts.grouping import aggregated
from advisor_core.facts.store import FactStore
from advisor_core.result.finding import Finding
from advisor_core.result.links import Link, LinkCell, LinkMatrix, TransportLinks

SINGLE_RANKS = 32
"""Up to so many ranks each has a row of its own: more rows cannot be told apart on a printed page. Our choice."""

HOST_RANKS = 8
"""Ranks that share a row where there are more, doubled until `SINGLE_RANKS` rows are enough: accelerators of a host."""

LISTED = 64
"""Links that are listed, the slowest; our choice. The matrix has all."""

SUBJECT = ("group", "source_rank", "target_rank", "transport")
"""The names of a finding about one link."""


def rank_links(store: FactStore) -> pd.DataFrame | None:
    """The fact ``link_speeds`` of a rank, with ``bytes`` per step and ``lost_ns`` as of `Link`; ``None`` where no links
    are recorded."""
    found = store.get(link_speeds)
    if found is None or found.empty:
        return None
    usual_ns = (found["bytes"] / found["median_bandwidth"] * 1e9).fillna(found["transit_ns"])
    lost_ns = (found["transit_ns"] - usual_ns).clip(lower=0).round().astype("int64")
    return found.assign(bytes=found["bytes"] // found["steps"], lost_ns=lost_ns // found["steps"])


def link_matrix(ranks: Mapping[int, pd.DataFrame], findings: Iterable[Finding]) -> LinkMatrix | None:
    """``ranks``: rank to its `rank_links`. ``None`` where no link is known of."""
    if not ranks:
        return None
    every = pd.concat([frame.assign(rank=rank) for rank, frame in ranks.items()], ignore_index=True)
    every, assumed = _placed(every)
    slow = _slow(findings)
    own = zip(every["rank"], *(every[name] for name in SUBJECT), strict=True)
    every["findings"] = [slow.get(link, ()) for link in own] if slow else [()] * len(every)
    every["called"] = every["findings"].map(len) > 0
    placed = every[every["source"] >= 0]
    ends = sorted({*placed["source"].tolist(), *placed["target"].tolist(), *ranks}) if len(placed) else []
    width = _ranks_per_cell(ends)
    return LinkMatrix(
        ranks_per_cell=width,
        rows=sorted({rank - rank % width for rank in ends}),
        cells=_cells(placed, width),
        transports=[_transport(str(name), own) for name, own in every.groupby("transport")["bandwidth"]],
        links=_listed(placed),
        recorded=len(every),
        unplaced=len(every) - len(placed),
        assumed=assumed,
    )


def _placed(every: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The links, also those of groups without recorded ranks where each rank has its own number as its place: as groups
    are in order of ranks, all ranks up to the highest recorded one then have. That those behind it follow without a gap
    is assumed: of how many links is told with them."""
    unknown = every[every["source"] < 0]
    own = (unknown["source_rank"] == unknown["rank"]).groupby(unknown["group"]).transform("all")
    highest = unknown.groupby("group")["rank"].transform("max")
    found = unknown[own & (highest > 0)]
    every.loc[found.index, ["source", "target"]] = found[["source_rank", "target_rank"]].to_numpy()
    return every, int((found["target_rank"] > highest[found.index]).sum())


def _slow(findings: Iterable[Finding]) -> dict[tuple[object, ...], tuple[str, ...]]:
    """The fingerprints of the findings about a link, by the rank that recorded it and the link."""
    found: dict[tuple[object, ...], tuple[str, ...]] = {}
    for finding in findings:
        if all(name in finding.subject for name in SUBJECT):
            for rank in finding.ranks:
                link = rank, *(finding.subject[name] for name in SUBJECT)
                found[link] = (*found.get(link, ()), finding.fingerprint)
    return found


def _ranks_per_cell(ends: Sequence[int]) -> int:
    if len(ends) <= SINGLE_RANKS:
        return 1
    width = HOST_RANKS
    while len({rank // width for rank in ends}) > SINGLE_RANKS:
        width *= 2
    return width


def _cells(placed: pd.DataFrame, width: int) -> list[LinkCell]:
    if placed.empty:
        return []
    rows, columns = (placed[name] - placed[name] % width for name in ("source", "target"))
    moved = placed.assign(moved=placed["bandwidth"] * placed["transit_ns"], row=rows, column=columns)
    cells = aggregated(
        moved, ("row", "column"), moved=("moved", "sum"), ns=("transit_ns", "sum"), links=("row", "size")
    )
    called: dict[tuple[int, int], list[str]] = {}
    for row, column, own in moved.loc[moved["called"], ["row", "column", "findings"]].itertuples(index=False):
        known = called.setdefault((row, column), [])
        known += [fingerprint for fingerprint in own if fingerprint not in known]
    return [
        LinkCell(source=row, target=column, bandwidth=moved / ns, links=links, findings=called.get((row, column), []))
        for row, column, moved, ns, links in zip(*(cells[name].tolist() for name in cells), strict=True)
    ]


def _transport(name: str, bandwidth: pd.Series) -> TransportLinks:
    least, median, most = np.quantile(bandwidth.to_numpy(), [0, 0.5, 1]).tolist()
    return TransportLinks(transport=name, links=len(bandwidth), least=least, median=median, most=most)


def _listed(placed: pd.DataFrame) -> list[Link]:
    order = placed.assign(others=~placed["called"], gained=-placed["lost_ns"])
    order = order.sort_values(["others", "gained", "source", "target"], kind="stable").head(LISTED)
    return [
        Link(
            source=row["source"],
            target=row["target"],
            transport=row["transport"],
            group=row["group"],
            bytes=row["bytes"],
            lost_ns=row["lost_ns"],
            bandwidth=row["bandwidth"],
            median_bandwidth=None if np.isnan(row["median_bandwidth"]) else row["median_bandwidth"],
            findings=list(row["findings"]),
        )
        for row in order.to_dict("records")
    ]
