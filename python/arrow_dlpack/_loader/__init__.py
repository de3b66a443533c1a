"""Training loops: from a source of rows to batches of tensors.

loader, options: ``Loader``, ``iter_batches``, their keywords, written down and judged once.
columns, categories, bucketing: what a column becomes; codes of words; batches of like lengths.
sources, source, datasets, ipc, paths, iceberg, mix: what is read, of one part or of several.
schema, readers, filters: one schema for all parts, readers of pyarrow, the rows that are kept.
epochs, epoch, sharding, row_groups, resume, identity: an epoch, a rank's share, a state.
prefetch, parallel, summary: transforms ahead, many files at once, what ``repr`` says.
"""
