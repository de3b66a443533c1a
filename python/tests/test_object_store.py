"""Files in an object store as sources of `Loader`: nothing is read twice, and much at once."""

import itertools
import json
import pickle

import fsspec.config
import numpy as np
import object_store
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from arrow_dlpack import Categories, Loader
from object_store import BUCKET, Store, put
from test_loader import CONTEXT

pytestmark = pytest.mark.library("moto")

FILES, GROUPS, EACH = 8, 2, 30
ROWS = FILES * EACH
# Wide enough that a file is larger than what pyarrow reads of its end to have its footer, 64 KiB:
# what is read of the end is then the footer.
NOISE = np.random.default_rng(1).bytes(ROWS * 4000)
TABLE = pa.table(
    {
        "y": range(ROWS),
        "word": [f"w{row // EACH}" for row in range(ROWS)],
        "noise": [NOISE[row * 4000 : row * 4000 + 4000] for row in range(ROWS)],
    }
)
OPTIONS = {"columns": ["y"], "batch_size": 7, "framework": "numpy"}
ORDERS = {"in order": {}, "shuffled": {"shuffle": 40, "seed": 1}}


@pytest.fixture(scope="module")
def store():
    """Eight files in a folder, and the same in folders of two values."""
    store = Store()
    system = object_store.filesystem(store.address)
    object_store.fill(system, TABLE, FILES)
    for at in range(FILES):
        part = TABLE.slice(at * EACH, EACH)
        put(system, f"hive/fold={at % 2}/{at:05}.parquet", part, GROUPS)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in object_store.variables(store.address).items():
            patch.setenv(name, value)
        yield store
    store.close()


@pytest.fixture(autouse=True)
def well(store):
    yield
    store.recover()
    store.delay = 0.0


def paths():
    return [f"{BUCKET}/many/{at:05}.parquet" for at in range(FILES)]


def dataset_of(store):
    return ds.dataset(paths(), filesystem=object_store.filesystem(store.address))


@pytest.fixture
def exact_reads(monkeypatch):
    """s3fs reads ahead by 5 MB, and so the ends of small files with anything."""
    monkeypatch.setitem(fsspec.config.conf, "s3", {"default_cache_type": "none"})


SOURCES = {
    "list": lambda store: [f"s3://{path}" for path in paths()],
    "pattern": lambda store: f"s3://{BUCKET}/many/*.parquet",
    "folder": lambda store: f"s3://{BUCKET}/many",
    "hive": lambda store: f"s3://{BUCKET}/hive",
    "dataset": dataset_of,
    "dataset of a folder": lambda store: ds.dataset(
        f"{BUCKET}/many", filesystem=object_store.filesystem(store.address)
    ),
}


def y_of(batches):
    return [np.asarray(batch["y"]).tolist() for batch in batches]


def rows_of(batches):
    return [row for batch in y_of(batches) for row in batch]


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_each_row_is_there_once_over_epochs_and_ranks(store, make, order):
    source = make(store)
    loader = Loader(source, **OPTIONS, **order)
    epochs = [rows_of(loader) for _ in range(2)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(ROWS))] * 2
    assert (epochs[0] == epochs[1]) == (not order)
    ranks = [
        Loader(source, rank=rank, world_size=4, uneven="allow", **OPTIONS, **order)
        for rank in range(4)
    ]
    assert sorted(row for rank in ranks for row in rows_of(rank)) == list(range(ROWS))


def test_one_file_is_a_source(store):
    assert rows_of(Loader(f"s3://{paths()[3]}", **OPTIONS)) == list(range(3 * EACH, 4 * EACH))


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("make", [SOURCES["pattern"], SOURCES["dataset"]], ids=["paths", "dataset"])
def test_after_any_batch_the_rest_is_the_same(store, make, order):
    source = make(store)
    whole = y_of(Loader(source, **OPTIONS, **order))
    stopped = Loader(source, **OPTIONS, **order)
    epoch = iter(stopped)
    for at in range(len(whole)):
        if at % 5 == 0:
            resumed = Loader(source, **OPTIONS, **order)
            resumed.load_state_dict(json.loads(json.dumps(stopped.state_dict())))
            assert y_of(resumed) == whole[at:]
        next(epoch)


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("make", [SOURCES["pattern"], SOURCES["dataset"]], ids=["paths", "dataset"])
def test_workers_share_the_files(store, make, order):
    loader = Loader(make(store), **OPTIONS | {"framework": "torch"}, **order)
    workers = loader.torch(num_workers=2, multiprocessing_context=CONTEXT)
    assert sorted(rows_of(workers)) == list(range(ROWS))


def test_a_loader_that_has_read_is_pickled(store):
    loader = Loader(dataset_of(store), **OPTIONS, **ORDERS["shuffled"])
    first, second = y_of(loader), y_of(loader)
    again = pickle.loads(pickle.dumps(loader))
    assert first != second
    assert sorted(rows_of(again)) == list(range(ROWS))


def test_rows_are_filtered(store):
    for order in ORDERS.values():
        for make in SOURCES["pattern"], SOURCES["dataset"]:
            loader = Loader(make(store), filter=pc.field("y") < 75, **OPTIONS, **order)
            assert sorted(rows_of(loader)) == list(range(75))


def test_folders_tell_a_column(store):
    (batch,) = Loader(f"s3://{BUCKET}/hive", columns=["y", "fold"], batch_size=ROWS)
    y, fold = (np.asarray(batch[name]) for name in ("y", "fold"))
    assert (fold == y // EACH % 2).all()


def test_categories_are_found(store):
    for make in SOURCES["pattern"], SOURCES["dataset"]:
        options = {"columns": {"word": Categories.scan(), "y": None}, "batch_size": ROWS}
        (batch,) = Loader(make(store), **options)
        assert len(set(np.asarray(batch["word"]).tolist())) == FILES


@pytest.mark.parametrize("failing", [0, 1], ids=["open", "read"])
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("make", [SOURCES["pattern"], SOURCES["dataset"]], ids=["paths", "dataset"])
def test_an_error_of_the_store_names_the_file(store, make, order, failing):
    """The first request of a file is for its footer."""
    loader = Loader(make(store), **OPTIONS, **order)
    store.fail("00005.parquet", failing)
    with pytest.raises((OSError, ValueError), match="00005.parquet"):
        # The second epoch for s3fs, which has a small file whole with its footer.
        rows_of(itertools.chain(loader, loader))
    store.recover()
    assert sorted(rows_of(loader)) == list(range(ROWS))


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("rank", [None, 1])
@pytest.mark.parametrize("make", [SOURCES["pattern"], SOURCES["dataset"]], ids=["paths", "dataset"])
def test_a_footer_is_read_once(store, make, order, rank, exact_reads):
    """By all epochs of a Loader, after a resume too; that of the first file also for the schema."""
    options = {} if rank is None else {"rank": rank, "world_size": 4, "uneven": "allow"}
    store.forget()
    loader = Loader(make(store), **OPTIONS, **options, **order)
    for _ in range(2):
        y_of(loader)
    epoch = iter(loader)
    next(epoch)
    state = loader.state_dict()
    rest = y_of(epoch)
    loader.load_state_dict(state)
    assert y_of(loader) == rest
    schema, *others = (store.footers()[path.removeprefix(f"{BUCKET}/")] for path in paths())
    assert schema <= 2
    assert max(others) == 1


def test_ranks_of_one_process_share_footers(store):
    source = dataset_of(store)
    store.forget()  # what was read for the schema
    for rank in range(4):
        rows_of(Loader(source, rank=rank, world_size=4, uneven="allow", **OPTIONS))
    assert max(store.footers().values()) == 1


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_footers_are_read_at_once(store, order):
    """More of them than pyarrow has threads for, and a rank needs all of them."""
    system = object_store.filesystem(store.address)
    rows = TABLE.slice(0, 96).select(["y"])
    source = ds.dataset(object_store.fill(system, rows, 32, "small"), filesystem=system)
    store.delay = 0.1
    loader = Loader(source, rank=0, world_size=4, uneven="allow", **OPTIONS, **order)
    store.forget()
    next(iter(loader))
    assert store.most_at_once > 2 * pa.io_thread_count()


@pytest.mark.parametrize("make", [SOURCES["pattern"], SOURCES["dataset"]], ids=["paths", "dataset"])
def test_a_loop_that_is_left_lets_go(store, make):
    store.delay = 0.02
    for order in ORDERS.values():
        loader = Loader(make(store), prefetch=2, **OPTIONS, **order)
        next(iter(loader))
    assert sorted(rows_of(loader)) == list(range(ROWS))


def test_a_missing_file_is_named(store):
    source = [f"s3://{paths()[0]}", f"s3://{BUCKET}/many/away.parquet"]
    with pytest.raises((OSError, ValueError), match="away.parquet"):
        rows_of(Loader(source, **OPTIONS))
    with pytest.raises(FileNotFoundError, match="no file is called"):
        rows_of(Loader(f"s3://{BUCKET}/many/*.none", **OPTIONS))


@pytest.mark.parametrize("make", [SOURCES["pattern"], SOURCES["dataset"]], ids=["paths", "dataset"])
def test_a_state_reads_the_first_rows_of_one_file_once(store, make, exact_reads):
    loader = Loader(make(store), **OPTIONS)
    list(loader)
    store.forget()
    loader.state_dict()
    read = store.counted()
    assert sum(read.values()) <= 2
    assert len(read) == 1
    loader.state_dict()
    assert store.counted() == read
