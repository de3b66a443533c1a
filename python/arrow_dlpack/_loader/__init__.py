"""Training loops: from a source of rows to batches of tensors.

loader: ``Loader``: epoch after epoch, its pickle, and the types of its overloads.
iter_batches: one pass, with the types of its overloads.
encoder: ``Encoder``: rows of a service as what a batch of training is.
written: an encoder as JSON.
options: their keywords, written down and judged once.
checks: what a `Loader` refuses when it is made.
empty: sources without rows, by which it is checked.
epoch: one pass: which rows this process reads, and the batches made of them.
resume: where a loader stands, what its state holds, and where the next epoch goes on.
sharding: ranks and workers, and the batches of each.
chunks: a state's batches where they are the chunks of the source.
identity: what a state holds of the data.
other_data: whether a state is of the data that a source has.

functions: functions of (index, count) as sources.
kinds: how each kind of source is opened.
known: what a source tells of its columns without being read.
source: the opened source: a stream, an iterator of batches, several tables.
datasets: datasets of files, whose row groups are read alone.
files: files that are named, of the types of all footers.
finite: values that a dataset's schema makes infinite.
row_groups: the rows of row groups of Parquet files.
ipc: files of Arrow IPC that pyarrow's datasets do not read.
iceberg: tables of Iceberg.
paths: paths, URLs and patterns as files, and keys of folders.
parallel: many small reads of files at once.
mix: several sources by weight.

columns: what a column becomes: the wishes.
categories: words to codes, and the words of a source.
bucketing: batches of rows of similar lengths.
schema: one schema for all parts of a source.
merging: the type that has the values of several types.
readers: readers of pyarrow for any data, and columns within structs.
filters: the rows that are kept.
prefetch: transforms made ahead by a thread.
summary: what ``repr`` says.
"""
