import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.errors import CodecError, InputError
from hazemap.federated.protocols.secure_aggregation.client_bitmap import Bitmap
from hazemap.vdaf.tls_encoding import TlsReader, TlsWriter


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
