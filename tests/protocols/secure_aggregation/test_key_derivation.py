"""HKDF-SHA256: the published vectors, and the library's own implementation as the judge of everything else."""

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from hazemap.errors import InputError
from hazemap.protocols.secure_aggregation.key_derivation import derived, expand, extract

# RFC 5869, appendix A: input keying material, salt, info, pseudorandom key, output keying material
VECTORS = [
    (
        b"\x0b" * 22,
        bytes(range(13)),
        bytes(range(0xF0, 0xFA)),
        "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
    ),
    (
        bytes(range(0x50)),
        bytes(range(0x60, 0xB0)),
        bytes(range(0xB0, 0x100)),
        "06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
        "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09da32"
        "75600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87",
    ),
    (
        b"\x0b" * 22,
        b"",
        b"",
        "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
    ),
]


@pytest.mark.parametrize(("secret", "salt", "info", "key", "output"), VECTORS)
def test_the_published_vectors_come_out(secret, salt, info, key, output):
    assert extract(salt, secret).hex() == key
    assert expand(extract(salt, secret), info, len(output) // 2).hex() == output


@given(st.binary(max_size=100), st.binary(min_size=32, max_size=32), st.binary(max_size=100), st.integers(1, 200))
def test_a_derived_key_is_the_librarys_under_our_name(secret, session, purpose, length):
    judge = HKDF(SHA256(), length, session, b"hazemap 1 " + purpose).derive(secret)
    assert derived(secret, session, purpose, length) == judge


def test_a_key_has_at_least_one_byte_and_at_most_what_hkdf_gives():
    assert len(expand(bytes(32), b"", 255 * 32)) == 255 * 32
    for length in (0, -1, 255 * 32 + 1):
        with pytest.raises(InputError):
            expand(bytes(32), b"", length)


def test_a_session_of_another_length_is_no_session():
    with pytest.raises(InputError):
        derived(bytes(32), bytes(31), b"", 16)
