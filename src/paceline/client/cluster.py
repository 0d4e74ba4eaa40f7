"""The nodes of a store as one question asked at one moment."""

from collections.abc import Mapping

from paceline.core.cluster import Cluster, limits_of, lines_of
from paceline.store.protocol import Tx


def cluster(tx: Tx, said: Mapping[str, int], *, ended: int = 0) -> Cluster:
    """The nodes that have not ended and up to so many that have; `said` are the limits of the settings here."""
    rows = {node.id: node for node in tx.nodes.live()}
    most = len(rows) + ended
    if ended:
        rows.update((node.id, node) for node in tx.nodes.newest(most))
    served = [(node, name) for node, _, name, _ in tx.reasons.served()]
    lines = lines_of(rows.values(), tx.now, tx.nodes.load(), served)
    limits = limits_of(tx.pools.limits(), said, tx.pools.held())
    return Cluster(lines[:most], limits, tx.now)
