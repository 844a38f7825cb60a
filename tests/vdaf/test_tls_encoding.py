from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.vdaf.errors import CodecError, InputError
from hazemap.vdaf.tls_encoding import Structure, TlsReader, TlsWriter, code, opaque, rest, vector


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


class Colour(IntEnum):
    RED = 1


@dataclass(frozen=True)
class Word(Structure):
    text: Annotated[bytes, opaque(1, least=1)]


@dataclass(frozen=True)
class Sentence(Structure):
    colour: Annotated[Colour, code(Colour, 1)]
    first: Annotated[tuple[Word, ...], vector(Word, 2)]
    words: Annotated[tuple[Word, ...], rest(Word, 2)]


def test_a_vector_has_the_bytes_that_it_says_and_the_last_one_all_that_are_left():
    written = Sentence(Colour.RED, (Word(b"ab"), Word(b"c")), (Word(b"d"),))
    assert written.to_bytes().hex() == "01" + "0005" + "026162" + "0163" + "0164"
    assert Sentence.from_bytes(written.to_bytes()) == written
    assert Sentence.from_bytes(bytes.fromhex("010000")) == Sentence(Colour.RED, (), ())


@pytest.mark.parametrize(
    "data",
    ["02000000", "0100", "010001", "01000100", "0100020261", "010000" + "00", "010000" + "0261"],
)
def test_a_vector_that_ends_within_a_value_an_unknown_code_or_an_empty_field_are_refused(data):
    with pytest.raises(CodecError):
        Sentence.from_bytes(bytes.fromhex(data))
    with pytest.raises(InputError, match="at least 1"):
        Word(b"").to_bytes()


def test_a_message_has_no_more_values_than_may_be():
    most = Sentence(Colour.RED, (), (Word(b"a"),) * 2)
    assert Sentence.from_bytes(most.to_bytes()) == most
    with pytest.raises(InputError, match="at most 2 of Word"):
        Sentence(Colour.RED, (), (Word(b"a"),) * 3).to_bytes()
    with pytest.raises(CodecError, match="at most 2 of Word"):
        Sentence.from_bytes(most.to_bytes() + b"\1a")
