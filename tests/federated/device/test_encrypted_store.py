"""The file of a device: sealed, whole, its own."""

import sqlite3
import stat

import numpy as np
import pytest

from hazemap.errors import FileError, InputError
from hazemap.federated.device import enrolment
from hazemap.federated.device.store import row_store as rows
from hazemap.federated.device.store.encrypted_store import EncryptedStore, StoreSecret, StoreWrite, key_file
from hazemap.federated.device.store.row_store import DeviceRows, RowStore

LON, LAT = 13.37771239, 52.51629874


@pytest.fixture
def path(tmp_path):
    return tmp_path / "device.sqlite"


def bytes_of(folder):
    return b"".join(file.read_bytes() for file in folder.iterdir() if file.suffix != ".key")


def test_the_raw_files_hold_no_coordinate_and_no_key(path):
    with EncryptedStore.opened(path, create=True) as store:
        [device] = enrolment.add(store)
        own = enrolment.read(store, device).enrolled("https://server.example", "secret token", "d-1", "secret ticket")
        store.commit([[enrolment.saved(store, device, own)]])
        RowStore(store, device).add(DeviceRows.of([LON], [LAT], time=0.0), None)
        secrets = [np.array([LON]).tobytes(), np.array([LAT]).tobytes(), str(LON).encode(), str(LAT).encode()]
        secrets += [own.identity, own.sampling, own.identity.hex().encode(), own.sampling.hex().encode()]
        secrets += [b"secret", b"server.example", bytes.fromhex(key_file(path).read_text())]
        found = bytes_of(path.parent)
        assert not [secret for secret in secrets if secret in found]
        assert len(found) > 10_000
    assert not [secret for secret in secrets if secret in bytes_of(path.parent)]


def test_the_key_is_in_a_file_of_the_owner_alone(path):
    EncryptedStore.opened(path, create=True).close()
    for file in (path, key_file(path)):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_key_file_that_others_may_read_is_refused(path):
    EncryptedStore.opened(path, create=True).close()
    key_file(path).chmod(0o644)
    with pytest.raises(FileError, match="chmod 600"):
        EncryptedStore.opened(path)


def test_a_store_without_its_key_file_stays_closed(path):
    EncryptedStore.opened(path, create=True).close()
    key_file(path).unlink()
    with pytest.raises(FileError, match="bring it back"):
        EncryptedStore.opened(path)
    key_file(path).touch(mode=0o600)
    with pytest.raises(FileError, match="holds no key"):
        EncryptedStore.opened(path)
    key_file(path).write_text("00" * 32)
    with pytest.raises(FileError, match="not the secret"):
        EncryptedStore.opened(path)


def test_a_store_can_be_opened_by_a_passphrase_and_by_no_other(path):
    with EncryptedStore.opened(path, StoreSecret("correct horse"), create=True) as store:
        [device] = enrolment.add(store)
    assert not key_file(path).exists()
    with EncryptedStore.opened(path, StoreSecret("correct horse")) as store:
        assert enrolment.devices(store) == [device]
    with pytest.raises(FileError, match="not the secret"):
        EncryptedStore.opened(path, StoreSecret("wrong horse"))
    with pytest.raises(InputError, match="opened by a passphrase; found a key file"):
        EncryptedStore.opened(path)


def test_the_environment_may_hold_the_key_or_the_passphrase_but_not_both(path):
    key = {"HAZEMAP_DEVICE_KEY": "ab" * 32}
    with EncryptedStore.opened(path, StoreSecret.from_environment(key), create=True) as store:
        enrolment.add(store)
    assert "ab" not in repr(StoreSecret.from_environment(key))
    with pytest.raises(InputError, match="not both"):
        StoreSecret.from_environment({**key, "HAZEMAP_DEVICE_PASSPHRASE": "horse"})
    for wrong in ("ab", "no digits"):
        with pytest.raises(InputError):
            StoreSecret.from_environment({"HAZEMAP_DEVICE_KEY": wrong})
    with pytest.raises(InputError, match="empty"):
        StoreSecret.from_environment({"HAZEMAP_DEVICE_PASSPHRASE": ""})


def test_a_missing_store_is_not_made_by_reading(path):
    with pytest.raises(FileError, match="no device"):
        EncryptedStore.opened(path)
    assert not path.exists()


@pytest.mark.parametrize("content", [b"not a database at all, but some text that is long enough", b"\x00" * 4096])
def test_another_file_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(FileError):
        EncryptedStore.opened(path, create=True)
    assert path.read_bytes() == content


def test_another_database_is_refused(path):
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(FileError, match="not a device's"):
        EncryptedStore.opened(path, create=True)


def test_a_record_that_was_moved_or_changed_is_refused(path):
    with EncryptedStore.opened(path, create=True) as store:
        sealed = store.seal("rows", 1, 7, b"row", expires=3)
        assert store.unseal("rows", 1, 7, sealed, expires=3) == b"row"
        for place in (("log", 1, 7, 3), ("rows", 2, 7, 3), ("rows", 1, 8, 3), ("rows", 1, 7, 4)):
            with pytest.raises(FileError, match="damaged, or was moved"):
                store.unseal(*place[:3], sealed, expires=place[3])
        with pytest.raises(FileError, match="damaged"):
            store.unseal("rows", 1, 7, sealed[:-1] + bytes([sealed[-1] ^ 1]), expires=3)
        assert store.seal("rows", 1, 7, b"row") != store.seal("rows", 1, 7, b"row")


def test_of_a_batch_each_device_is_written_whole_or_not_at_all(path):
    def line(device, number):
        return StoreWrite("INSERT INTO log VALUES (?, ?, x'')", (device, number))

    with EncryptedStore.opened(path, create=True) as store:
        nothing = StoreWrite("UPDATE log SET sealed = x'' WHERE device = 9", ())
        outcomes = store.commit([[line(1, 1)], [line(2, 1), line(1, 1)], [line(3, 1), nothing], [line(4, 1)]])
        assert [outcome is None for outcome in outcomes] == [True, False, False, True]
        assert store.read("SELECT device FROM log ORDER BY device") == [(1,), (4,)]


def test_a_transaction_that_fails_leaves_nothing(path):
    def fail(store):
        with store.writing() as database:
            database.execute("INSERT INTO log VALUES (1, 1, x'')")
            raise KeyboardInterrupt

    with EncryptedStore.opened(path, create=True) as store:
        with pytest.raises(KeyboardInterrupt):
            fail(store)
        assert store.read("SELECT * FROM log") == []


def test_rows_come_back_as_a_table_of_one_person(path):
    with EncryptedStore.opened(path, create=True) as store:
        first, second = enrolment.add(store, 2)
        places = DeviceRows(*np.array([[0.0, 86_400, 10], [1, 2, 3], [4, 5, 6], [1, 2, 0.5], [0, 1, np.nan]]))
        rows.added(store, {first: places, second: DeviceRows.of([9.0], [9.0], 0)}, None)
        table = RowStore(store, first).table(b"secret", "campaign")
        assert table.columns["lon"].tolist() == [1, 3, 2]
        assert table.columns["weight"].tolist() == [1, 0.5, 2]
        assert set(table.person) == {0}
        assert table.key == RowStore(store, first).table(b"secret", "campaign").key
        assert table.key != RowStore(store, first).table(b"secret", "another").key
        assert len(RowStore(store, second)) == 1


def test_a_device_without_rows_has_an_empty_table(path):
    with EncryptedStore.opened(path, create=True) as store:
        [device] = enrolment.add(store)
        assert len(RowStore(store, device)) == 0


def test_rows_are_deleted_for_good_when_they_are_old(path):
    with EncryptedStore.opened(path, create=True) as store:
        [device] = enrolment.add(store)
        RowStore(store, device).add(DeviceRows(*np.array([[0.0, 5 * 86_400], [1, 2], [3, 4], [1, 1], [0, 1]])), keep=2)
        sealed = [each for (each,) in store.read("SELECT sealed FROM rows ORDER BY sequence")]
        assert rows.expire(store, now=3 * 86_400 - 1) == 0
        assert rows.expire(store, now=3 * 86_400) == 1
        assert RowStore(store, device).table(b"", "").columns["lon"].tolist() == [2]
        assert rows.expire(store, now=3 * 86_400) == 0
        found = bytes_of(path.parent)
        assert sealed[0] not in found, "even the sealed bytes are overwritten"
        assert sealed[1] in found
        rows.forget(store, device)
        assert len(RowStore(store, device)) == 0
        assert sealed[1] not in bytes_of(path.parent)


def test_an_older_ticket_is_gone_from_the_file_and_the_journal(path):
    with EncryptedStore.opened(path, create=True) as store:
        [device] = enrolment.add(store)
        assert store.read("PRAGMA secure_delete") == [(1,)]
        [(older,)] = store.read("SELECT sealed FROM devices")
        known = enrolment.read(store, device).enrolled("https://maps.example", "token", "d", "ticket" * 9)
        store.commit([[enrolment.saved(store, device, known)]])
        assert older in bytes_of(path.parent)
        store.emptied()
        assert older not in bytes_of(path.parent)


def test_forgetting_everything_removes_every_file(path):
    store = EncryptedStore.opened(path, create=True)
    enrolment.add(store)
    store.forgotten()
    assert list(path.parent.iterdir()) == []


def test_two_processes_that_make_one_store_agree_on_its_key(path):
    with EncryptedStore.opened(path, create=True) as one, EncryptedStore.opened(path, create=True) as other:
        assert other.unseal("log", 1, 1, one.seal("log", 1, 1, b"word")) == b"word"


def test_a_store_of_another_version_is_refused_and_left_as_it_was(path):
    with EncryptedStore.opened(path, create=True) as store:
        [device] = enrolment.add(store)
        RowStore(store, device).add(DeviceRows.of([LON], [LAT], time=0.0), None)
        store.read("PRAGMA user_version = 2")
    with pytest.raises(FileError, match=r"another version of hazemap \(2\)"):
        EncryptedStore.opened(path)
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA user_version").fetchall() == [(2,)]
        assert database.execute("SELECT count(*) FROM rows").fetchall() == [(1,)]
        database.execute("PRAGMA user_version = 1")
    with EncryptedStore.opened(path) as store:
        assert len(RowStore(store, device)) == 1
