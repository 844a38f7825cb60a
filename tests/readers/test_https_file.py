"""A file over https gives the votes of the same file here; a server that does not keep to its word is refused."""

import dataclasses
import gzip
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.readers.range_server import Reply, Served, served
from tests.tables.people import QUADTREE, crowd, same

from hazemap.cli.main import main
from hazemap.errors import FileError, InputError, TableError
from hazemap.execution.crash_recovery import recover
from hazemap.execution.journal import Journal
from hazemap.privacy.ledger import Ledger
from hazemap.publish import release, stats
from hazemap.readers import stored_file
from hazemap.readers.open_table import open_table
from hazemap.readers.stored_file import RangeFile
from hazemap.sources.source import SIGNED, RemoteFiles, parse_source
from hazemap.specs.table_spec import TableSpec
from hazemap.tables.contribution_bounding import AtMostRows, OneVote, RowIsPerson

HIDDEN = "hunter2hunter2"
AREA = "13.0,52.3,13.8,52.7"


def parquet(rows: pa.Table, **options) -> bytes:
    goal = BytesIO()
    pq.write_table(rows, goal, **options)
    return goal.getvalue()


PEOPLE = crowd(300, 5_000)
ROWS = pa.table({"user": PEOPLE.person, **PEOPLE.columns})
DATA = parquet(ROWS, row_group_size=1_000)


@pytest.fixture(scope="module")
def at_all_times(tmp_path_factory):
    with served(tmp_path_factory.mktemp("tls")) as found:
        yield found


@pytest.fixture
def server(at_all_times, monkeypatch) -> Served:
    state, trusted = at_all_times
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    monkeypatch.setattr(stored_file, "PAUSE", 0.0)
    state.files = {"/trips/visits.parquet": (DATA, '"1"')}
    state.fault = lambda _number, reply: reply
    state.asked.clear()
    return state


@pytest.fixture
def url(server) -> str:
    return server.url("trips/visits.parquet")


def votes(source, rule=RowIsPerson(), **options):  # noqa: B008 - a value
    return open_table(source, key=b"k" * 16, **options).votes(QUADTREE, rule)


def test_a_file_over_https_gives_the_votes_of_the_same_file_here(server, url, tmp_path):
    (tmp_path / "visits.parquet").write_bytes(DATA)
    for rule in (AtMostRows(2), OneVote(1000), RowIsPerson()):
        assert same(votes(url, rule, memory_limit=1 << 20), votes(tmp_path / "visits.parquet", rule))
    lines = "user,lon,lat\n" + "".join(f"{i % 40},{13 + i / 1000},52.5\n" for i in range(700))
    server.files["/v.csv.gz"] = gzip.compress(lines.encode()), 'W/"weak"'
    (tmp_path / "v.csv").write_text(lines)
    assert same(votes(server.url("v.csv.gz"), OneVote(1000)), votes(tmp_path / "v.csv", OneVote(1000)))


def test_a_server_that_knows_only_times_of_change_is_asked_by_them(server, url):
    def dated(_number, reply):
        headers = {"Content-Range": reply.headers["Content-Range"], "Last-Modified": "Fri, 31 May 2024 10:00:00 GMT"}
        return dataclasses.replace(reply, headers=headers)

    server.fault = dated
    assert same(votes(url), votes(ROWS))
    assert server.asked[-1][1]["If-Unmodified-Since"] == "Fri, 31 May 2024 10:00:00 GMT"


def test_no_row_group_is_ever_whole_in_memory(server, monkeypatch):
    monkeypatch.setattr("hazemap.readers.parquet_files.PIECE", 1 << 16)
    rng = np.random.default_rng(1)
    rows = pa.table({name: rng.uniform(0, 1, 100_000) for name in ("lon", "lat", "other")})
    server.files["/t.parquet"] = parquet(rows, use_dictionary=False, data_page_size=1 << 15), '"1"'
    votes(server.url("t.parquet"))
    sizes = [end - start for start, end in (map(int, headers["Range"][6:].split("-")) for _, headers in server.asked)]
    assert max(sizes) <= 1 << 17 and sum(sizes) < 2_000_000  # of the columns asked for


def test_a_broken_connection_is_made_again_and_a_busy_server_asked_again(server, url):
    faults = {2: lambda _: None, 4: lambda _: Reply(503, {}, b""), 5: lambda r: dataclasses.replace(r, body=r.body[:5])}

    def fault(number, reply):
        told = faults.get(number, lambda each: each)(reply)
        if number == 5:
            told.headers["Content-Length"] = str(len(reply.body))
            told.headers["Connection"] = "close"
        return told

    server.fault = fault
    wanted = votes(pa.table(ROWS))
    server_votes = votes(url)
    assert same(server_votes, wanted)
    assert len(server.asked) > 6


def changed(**headers):
    def fault(number, reply):
        return dataclasses.replace(reply, headers={**reply.headers, **headers}) if number >= 1 else reply

    return fault


LIES = {
    "another range": (lambda _n, r: dataclasses.replace(r, headers={**r.headers, "Content-Range": "bytes 1-8/9999"})),
    "no range": (lambda _n, r: dataclasses.replace(r, headers={"ETag": '"1"'})),
    "endless numbers": (
        lambda _n, r: dataclasses.replace(r, headers={**r.headers, "Content-Range": f"bytes 0-7/{'9' * 500}"})
    ),
    "packed": (lambda _n, r: dataclasses.replace(r, headers={**r.headers, "Content-Encoding": "gzip"})),
    "longer": (lambda _n, r: dataclasses.replace(r, headers={**r.headers, "Content-Length": "9999999"})),
    "chunks of negative length": (
        lambda _n, r: Reply(
            206,
            {"ETag": r.headers["ETag"], "Content-Range": r.headers["Content-Range"], "Transfer-Encoding": "chunked"},
            b"-9\r\n" + bytes(1 << 20),
        )
    ),
    "more": (
        lambda _n, r: Reply(
            206,
            {**r.headers, "Transfer-Encoding": "chunked"} | {"Content-Length": str(len(r.body))},
            b"%x\r\n" % (len(r.body) + 4) + r.body + b"more\r\n0\r\n\r\n",
        )
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_server_that_answers_with_another_range_is_refused(lie, server, url, home):
    server.fault = LIES[lie]
    with pytest.raises(FileError, match="than it was asked for"):
        votes(url)


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (lambda _n, _r: Reply(200, {"ETag": '"1"'}, b"everything"), "does not serve ranges"),
        (lambda _n, _r: Reply(403, {}, HIDDEN.encode()), SIGNED),
        (lambda _n, _r: Reply(404, {}, HIDDEN.encode()), "there is no file https://localhost"),
        (lambda _n, _r: Reply(418, {}, HIDDEN.encode()), "answers 418"),
        (lambda _n, _r: Reply(503, {}, HIDDEN.encode()), "answers 503, after 4 tries"),
        (lambda _n, _r: None, "connection fails or breaks, after 4 tries"),
        (lambda _n, r: dataclasses.replace(r, headers={"Content-Range": r.headers["Content-Range"]}), "Last-Modified"),
        (lambda _n, _r: Reply(302, {"Location": f"https://{HIDDEN}.example/v.parquet"}, b""), "to another server"),
        (lambda _n, _r: Reply(302, {"Location": "http://localhost/v.parquet"}, b""), "away from https"),
        (lambda _n, _r: Reply(307, {"Location": "//[" + HIDDEN}, b""), "to another server"),
        (lambda _n, _r: Reply(302, {"Location": "/again"}, b""), "from address to address"),
        (lambda _n, _r: Reply(416, {}, b""), "is empty"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words_that_are_ours(fault, why, server, url):
    server.fault = fault
    with pytest.raises(InputError, match=why) as refused:
        votes(url)
    assert HIDDEN not in str(refused.value)


def test_an_address_that_moved_on_its_own_server_is_followed_and_the_new_one_never_shown(server, url):
    server.files = {f"/moved.parquet?token={HIDDEN}": (DATA, '"1"')}
    moved = Reply(302, {"Location": f"/moved.parquet?token={HIDDEN}"}, b"")
    server.fault = lambda _number, reply: moved if reply.status == 404 else reply
    assert same(votes(url), votes(ROWS))
    server.fault = lambda _number, reply: moved if reply.status == 404 else Reply(410, {}, b"")
    with pytest.raises(FileError, match=f"there is no file {url}") as refused:
        votes(url)
    assert HIDDEN not in str(refused.value)


@pytest.mark.parametrize("fault", [changed(ETag='"2"'), lambda n, r: Reply(412, {}, b"") if n else r])
def test_a_file_that_changes_in_the_middle_counts_for_nothing(fault, server, url, tmp_path, home):
    ledger = Ledger(tmp_path / "ledger")
    server.fault = lambda number, reply: fault(max(0, number - 4), reply)
    with pytest.raises(FileError, match="was changed while it was read"):
        release(url, person="user", epsilon=1, box=AREA, ledger=ledger, output=tmp_path / "map.parquet")
    assert list(ledger.history()) == [] and not (tmp_path / "map.parquet").exists()


def test_a_footer_that_asks_for_gigabytes_is_not_fetched(server, url, monkeypatch):
    monkeypatch.setattr("hazemap.readers.stored_file.MOST_AT_ONCE", 1 << 20)
    server.files["/trips/visits.parquet"] = b"PAR1" + bytes(3 << 20) + (2 << 20).to_bytes(4, "little") + b"PAR1", '"1"'
    with pytest.raises(FileError, match="can only be read at once"):
        votes(url)
    assert sum(1 for _ in server.asked) < 8


def test_a_store_that_gives_fewer_bytes_than_it_says_is_refused():
    with pytest.raises(FileError, match="ends before the size"):
        RangeFile("s3://city/v.parquet", 9, lambda _start, _length: b"abc").read(5)


def test_an_unknown_certificate_is_not_trusted(server, url, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(FileError, match=r"certificate .* cannot be verified"):
        votes(url)
    assert not server.asked


def test_points_and_files_of_no_known_kind_are_not_read_from_elsewhere(server):
    odd = parquet(pa.table({"lon": [1.0], "lat": [2.0], "name": [{"inner": 1}]})).replace(b"inner", b"inn\xffr")
    odd = odd.replace(b"ARROW:schema", b"OTHER:schema")
    server.files["/odd.parquet"] = odd, '"1"'
    with pytest.raises(FileError, match="is not a Parquet file"):
        votes(server.url("odd.parquet"))
    server.files |= {"/p.geojson": (b"{}", '"1"'), "/download": (b"{}", '"1"'), "/x.parquet": (b"PAR1 no", '"1"')}
    with pytest.raises(TableError, match="download"):
        votes(server.url("p.geojson"))
    with pytest.raises(FileError, match="no known kind"):
        votes(server.url("download"))
    with pytest.raises(FileError, match="is not a Parquet file"):
        votes(server.url("x.parquet"))


def test_a_signature_is_sent_to_its_file_alone_and_written_nowhere(server, url, tmp_path, home, monkeypatch, capsys):
    def signed(number, reply):
        return reply if server.asked[number][0].endswith(f"?sig={HIDDEN}") else Reply(403, {}, b"")

    server.files[f"/trips/visits.parquet?sig={HIDDEN}"] = DATA, '"1"'
    server.fault = signed
    monkeypatch.setenv(SIGNED, f"{url}?sig={HIDDEN}")
    goal = tmp_path / "map.parquet"

    def dies(*_arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "end", dies)
        with pytest.raises(KeyboardInterrupt):
            release(url, person="user", epsilon=1, box=AREA, output=goal)
    kept = [each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()]
    assert kept and not any(HIDDEN.encode() in each for each in kept)
    recover(1)
    assert main(["inspect", str(goal)]) == 0 and main(["ledger", "history", "visits"]) == 0
    assert HIDDEN not in "".join(capsys.readouterr()) and HIDDEN.encode() not in goal.read_bytes()
    server.asked.clear()
    with pytest.raises(FileError):
        votes(server.url("other.parquet"))
    assert not any(HIDDEN in path for path, _ in server.asked)


def test_a_signature_that_is_no_url_is_refused_and_not_shown(url, monkeypatch):
    monkeypatch.setenv(SIGNED, f"https://[{HIDDEN}/v.parquet?sig={HIDDEN}")
    with pytest.raises(InputError, match="copy it again") as refused:
        votes(url)
    assert HIDDEN not in str(refused.value) and refused.value.__suppress_context__


@pytest.mark.slow
def test_a_run_that_was_cut_off_is_recovered_while_the_file_is_the_same(server, url, tmp_path, home, monkeypatch):
    def dies(*_arguments):
        raise KeyboardInterrupt

    for _ in range(2):
        with monkeypatch.context() as patched:
            patched.setattr(Journal, "answer", dies)
            with pytest.raises(KeyboardInterrupt):
                release(url, person="user", epsilon=1, box=AREA, output=tmp_path / "map.parquet", overwrite=True)
    recover(1)
    server.files["/trips/visits.parquet"] = DATA, '"2"'
    with pytest.raises(FileError, match=r"was changed since, by what its store says .*: put back .*--same-table"):
        recover(2)
    for status, why in ((503, "cannot be read: the server answers 503"), (403, f"put a URL .* into {SIGNED}")):
        server.fault = lambda _number, _reply, status=status: Reply(status, {}, b"")
        with pytest.raises(FileError, match=f"cannot be asked now: .*{why}.*Recover it again") as told:
            recover(2)
        assert "changed" not in str(told.value)


def test_statistics_read_it_too(url, home):
    assert stats(url, person="user", value="lon", low=13, high=14, epsilon=1, box=AREA, cells="h3:5") is not None


@pytest.mark.parametrize(
    "text",
    [
        f"https://ann:{HIDDEN}@host.example/v.parquet",
        f"https://{HIDDEN}@host.example/v.parquet",
        f"https://ann:12/{HIDDEN}@host.example/v.parquet",
        f"https://ann:{HIDDEN}/v.parquet",
        f"https://host.example/v.parquet?X-Amz-Signature={HIDDEN}",
        f"https://host.example/v.parquet?{HIDDEN}",
        f"https://host.example?{HIDDEN}",
        f"https://host.example/v.parquet#{HIDDEN}",
        f"https://host.example/v\n{HIDDEN}.parquet",
        f"https:{HIDDEN}",
        f"http://ann:{HIDDEN}@host.example/v.parquet",
        f"s3://AKIAIOSFODNN7EXAMPLE:{HIDDEN}@bucket/v.parquet",
        f"s3://AKIA:{HIDDEN}/x@bucket/v.parquet",
        f"s3://bucket/v.parquet?aws_secret_access_key={HIDDEN}",
        f"s3://bucket/v.parquet?endpoint_override=x&secret_key={HIDDEN}",
        f"gs://ann:{HIDDEN}/v.parquet",
        f"ftp://ann:{HIDDEN}@host.example/v.parquet",
        f"S3://ann:{HIDDEN}@host.example/v.parquet",
    ],
)
def test_a_secret_in_an_address_is_refused_and_not_shown(text, home, capsys):
    for attempt in (TableSpec, RemoteFiles.parse, open_table, parse_source):
        with pytest.raises(InputError) as refused:
            attempt(text)
        assert HIDDEN not in str(refused.value)
    assert main(["release", text, "--epsilon", "1", "--box=13,52,14,53", "-o", "map.parquet"]) == 2
    assert HIDDEN not in "".join(capsys.readouterr())
    assert not home.exists() or not any(HIDDEN.encode() in f.read_bytes() for f in home.rglob("*") if f.is_file())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("http://host/v.parquet", "not read over http"),
        ("s3a://bucket/v.parquet", "write s3://bucket"),
        ("hdfs://host/v.parquet", "in a bucket"),
        ("https://host/folder/", "is one file"),
        ("https://host", "is one file"),
        ("https://host:99999/v.parquet", "is one file"),
        ("https://a..b/v.parquet", "is one file"),
        (f"https://{'a' * 64}.example/v.parquet", "is one file"),
        ("s3://Bucket/v.parquet", "small letters"),
        ("s3://bucket/" + "x" * 2_000, "at most 2000"),
    ],
)
def test_addresses_that_are_not_read_are_refused_in_words(text, why):
    with pytest.raises(InputError, match=why):
        RemoteFiles.parse(text)
