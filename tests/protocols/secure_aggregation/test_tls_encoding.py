import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.errors import CodecError, InputError
from hazemap.protocols.secure_aggregation.tls_encoding import Bitmap, TlsReader, TlsWriter


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("number"), st.sampled_from([1, 2, 4, 8]), st.integers(0, 2**64 - 1)),
            st.tuples(st.just("opaque"), st.sampled_from([1, 2, 4]), st.binary(max_size=255)),
            st.tuples(st.just("fixed"), st.just(0), st.binary(max_size=20)),
            st.tuples(
                st.just("numbered"),
                st.just(3),
                st.dictionaries(st.integers(0, 2**32 - 1), st.binary(min_size=3, max_size=3)),
            ),
            st.tuples(
                st.just("numbers"), st.just(0), st.lists(st.integers(0, 2**32 - 1), unique=True).map(sorted).map(tuple)
            ),
        )
    )
)
def test_what_is_written_is_read(values):
    writer, expected = TlsWriter(), []
    for kind, width, value in values:
        match kind:
            case "number":
                expected.append(value % 256**width)
                writer.number(expected[-1], width)
            case "opaque":
                expected.append(value)
                writer.opaque(value, width)
            case "fixed":
                expected.append(value)
                writer.fixed(value, len(value))
            case "numbered":
                expected.append(value)
                writer.numbered(value, width)
            case _:
                expected.append(value)
                writer.numbers(value)
    reader = TlsReader(writer.done())
    for (kind, width, value), wanted in zip(values, expected, strict=True):
        arguments = {
            "number": [width],
            "opaque": [width],
            "fixed": [len(value) if kind == "fixed" else 0],
            "numbered": [width],
            "numbers": [],
        }
        assert getattr(reader, kind)(*arguments[kind]) == wanted
    reader.end()


def test_numbers_are_big_endian_and_lengths_come_first():
    written = TlsWriter().number(258, 2).opaque(b"ab", 4).numbers((1, 2)).numbered({5: b"z"}, 1).done()
    assert written.hex() == "010200000002616200000002000000010000000200000001000000057a"


@pytest.mark.parametrize(
    ("data", "read"),
    [
        ("", lambda reader: reader.number(1)),
        ("00", lambda reader: reader.number(2)),
        ("ffffffff", lambda reader: reader.opaque(4)),
        ("0261", lambda reader: reader.opaque(1)),
        ("ffffffff", lambda reader: reader.numbers()),
        ("ffffffff0000", lambda reader: reader.numbered(66)),
        ("000000020000000200000001", lambda reader: reader.numbers()),
        ("000000020000000100000001", lambda reader: reader.numbers()),
        ("00000002000000017a000000017a", lambda reader: reader.numbered(1)),
        ("00000002000000027a000000017a", lambda reader: reader.numbered(1)),
        ("0000", lambda reader: (reader.number(1), reader.end())),
    ],
)
def test_bytes_missing_left_over_or_out_of_order_are_refused(data, read):
    with pytest.raises(CodecError):
        read(TlsReader(bytes.fromhex(data)))


def test_a_writer_does_not_write_what_it_could_not_read():
    for write in (
        lambda w: w.number(256, 1),
        lambda w: w.number(-1, 4),
        lambda w: w.fixed(b"abc", 2),
        lambda w: w.opaque(bytes(256), 1),
        lambda w: w.numbers((2, 1)),
        lambda w: w.numbered({1: b"ab"}, 3),
    ):
        with pytest.raises(InputError):
            write(TlsWriter())


@given(st.lists(st.booleans(), max_size=70))
def test_a_bitmap_is_a_set_of_positions(marks):
    positions = [i for i, mark in enumerate(marks) if mark]
    bitmap = Bitmap.of(len(marks), positions)
    assert bitmap.positions().tolist() == positions and len(bitmap) == len(positions)
    assert bitmap.marks().tolist() == marks
    assert [i in bitmap for i in range(-1, len(marks) + 9)] == [False, *marks, *[False] * 9]
    writer = TlsWriter()
    bitmap.write(writer)
    reader = TlsReader(writer.done())
    assert Bitmap.read(reader) == bitmap
    reader.end()
    assert Bitmap.of(len(marks), np.array(positions, dtype=np.int64)) == bitmap


def test_a_bit_for_somebody_who_is_not_there_is_refused():
    with pytest.raises(InputError):
        Bitmap(9, b"\x00\x40")
    with pytest.raises(InputError):
        Bitmap(9, b"\x00")
    with pytest.raises(CodecError):
        Bitmap.read(TlsReader(bytes.fromhex("000000090001")))
    with pytest.raises(CodecError):
        Bitmap.read(TlsReader(b"\xff\xff\xff\xff\0"))
