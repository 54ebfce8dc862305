"""One load from many machines: the engine on the nodes of a Dask cluster, one start, one merged result."""
