"""TurboSHAKE128 as RFC 9861 publishes it."""

from hazemap.vdaf.xofs import TurboShake128


def pattern(length: int) -> bytes:
    """RFC 9861, 4: the bytes 0 to 250, over and over."""
    return (bytes(range(251)) * (length // 251 + 1))[:length]


def test_the_published_outputs_are_reproduced():
    """RFC 9861, 5."""
    empty = "1e415f1c5983aff2169217277d17bb538cd945a397ddec541f1ce41af2c1b74c"
    assert TurboShake128(b"", 0x1F).next(32).hex() == empty
    assert TurboShake128(b"", 0x1F).next(10032)[-32:].hex() == (
        "a3b9b0385900ce761f22aed548e754da10a5242d62e8c658e3f3a923a7555607"
    )
    assert TurboShake128(pattern(17**2), 0x1F).next(32).hex() == (
        "96c77c279e0126f7fc07c9b07f5cdae1e0be60bdbe10620040e75d7223a624d2"
    )


def test_an_output_drawn_piece_by_piece_is_the_same():
    whole = TurboShake128(pattern(400), 7).next(1000)
    stream = TurboShake128(pattern(400), 7)
    assert b"".join(stream.next(length) for length in (0, 1, 167, 168, 169, 495)) == whole
