"""Arithmetic of Field64, Field128 and Field255 in machine code. This module imports numba.

Field64 (2^64 − 2^32 + 1): an element is a word.

Field128 (2^128 − 28 · 2^64 + 1): an element is a pair of words (low, high). `mul128(x, y)` is Montgomery's product
x · y / R with R = 2^128: constants are kept as c · R, so that a constant times a plain element is plain. A sum of
products is five words and reduced once. The modulus is 1 modulo 2^64, so that Montgomery's factor of a word w is −w.

Field255 (2^255 − 19): an element is four words, lowest first. `field255` does the same with arrays, and needs no
compiler.

In Field64 and Field128 nothing branches on elements.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from hazemap.vdaf.compiled_loops import Words, compiled, inlined
from hazemap.vdaf.ntt_field import FIELD128

MODULUS_64 = np.uint64(2**64 - 2**32 + 1)
_ZERO = np.uint64(0)
_LOW_HALF = np.uint64(2**32 - 1)
_HALF = np.uint64(32)


@inlined
def mask64(condition: bool | np.bool_) -> np.uint64:  # pragma: no cover - compiled
    """All ones where something is so, and zeros where it is not: loops without branches become ones of vectors."""
    return _ZERO - np.uint64(condition)


@inlined
def reduced64(low: np.uint64, high: np.uint64) -> np.uint64:  # pragma: no cover - compiled
    """The number low + 2^64 high modulo 2^64 - 2^32 + 1: 2^64 is 2^32 - 1 there, and 2^96 is -1."""
    top, rest = high >> _HALF, high & _LOW_HALF
    x = low - top - (_LOW_HALF & mask64(low < top))
    y = (rest << _HALF) - rest
    total = x + y
    total += _LOW_HALF & mask64(total < y)
    return total - (MODULUS_64 & mask64(total >= MODULUS_64))


@inlined
def sum64(a: np.uint64, b: np.uint64) -> np.uint64:  # pragma: no cover - compiled
    """The sum of two elements."""
    total = a + b
    return total - (MODULUS_64 & (mask64(total < a) | mask64(total >= MODULUS_64)))


@inlined
def negative64(a: np.uint64) -> np.uint64:  # pragma: no cover - compiled
    """Zero minus an element."""
    return (MODULUS_64 - a) & mask64(a != _ZERO)


@compiled
def add_into64(total: Words, more: Words) -> None:  # pragma: no cover - compiled
    """Add a vector to another, in place: arrays uint64[n, 1]."""
    sums, terms = total.reshape(total.size), more.reshape(more.size)
    for i in range(sums.size):
        sums[i] = sum64(sums[i], terms[i])


MODULUS_128 = FIELD128.modulus
WORDS = 2
WORD, LONG = ir.IntType(64), ir.IntType(256)
_types: Any = types


def _operation(typed: Callable[..., Any]) -> Any:
    """An intrinsic, of which the type checker knows nothing."""
    return intrinsic(typed)


def _joined(builder: Any, words: Any, count: int) -> Any:
    """A tuple of words as one number."""
    total = builder.zext(builder.extract_value(words, 0), LONG)
    for i in range(1, count):
        word = builder.zext(builder.extract_value(words, i), LONG)
        total = builder.or_(total, builder.shl(word, ir.Constant(LONG, 64 * i)))
    return total


def _split(builder: Any, number: Any, count: int, last: Any = None) -> Any:
    """The lowest words of a number as a tuple, and perhaps one more."""
    found = ir.Constant(ir.ArrayType(WORD, count + (last is not None)), ir.Undefined)
    for i in range(count):
        word = builder.trunc(builder.lshr(number, ir.Constant(LONG, 64 * i)), WORD)
        found = builder.insert_value(found, word, i)
    return found if last is None else builder.insert_value(found, last, count)


def _product(builder: Any, x: Any, y: Any) -> Any:
    """Two pairs of words multiplied: 256 bits."""
    a, b = ([builder.zext(builder.extract_value(each, i), LONG) for i in range(2)] for each in (x, y))
    outer = builder.or_(builder.mul(a[0], b[0]), builder.shl(builder.mul(a[1], b[1]), ir.Constant(LONG, 128)))
    shift = ir.Constant(LONG, 64)
    first = builder.add(outer, builder.shl(builder.mul(a[0], b[1]), shift))
    return builder.add(first, builder.shl(builder.mul(a[1], b[0]), shift))


def _divided_by_r(builder: Any, number: Any) -> Any:
    """A number below 2^256 divided by R modulo p: below 2^128 + p, and below 2 p if the number is below p R."""
    for _ in range(2):
        word = builder.trunc(number, WORD)
        factor = builder.zext(builder.sub(ir.Constant(WORD, 0), word), LONG)
        carry = builder.zext(builder.icmp_unsigned("!=", word, ir.Constant(WORD, 0)), LONG)
        high = builder.sub(
            builder.shl(factor, ir.Constant(LONG, 64)), builder.mul(factor, ir.Constant(LONG, 28))
        )  # factor · (p − 1) / 2^64
        number = builder.add(builder.add(builder.lshr(number, ir.Constant(LONG, 64)), high), carry)
    return number


def _less_modulus(builder: Any, number: Any) -> Any:
    """The number less p where it is not below p."""
    modulus = ir.Constant(LONG, MODULUS_128)
    return builder.select(builder.icmp_unsigned(">=", number, modulus), builder.sub(number, modulus), number)


def _pair() -> Any:
    """The type of an element."""
    return _types.UniTuple(_types.uint64, 2)


def _five() -> Any:
    """The type of a sum of products."""
    return _types.UniTuple(_types.uint64, 5)


@_operation
def mul128(_typing: Any, x: Any, y: Any) -> Any:
    """The product of two elements, divided by R."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return _split(builder, _less_modulus(builder, _divided_by_r(builder, _product(builder, *arguments))), 2)

    return _pair()(x, y), code


@_operation
def add128(_typing: Any, x: Any, y: Any) -> Any:
    """The sum of two elements."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        total = builder.add(*(_joined(builder, each, 2) for each in arguments))
        return _split(builder, _less_modulus(builder, total), 2)

    return _pair()(x, y), code


@_operation
def sub128(_typing: Any, x: Any, y: Any) -> Any:
    """The difference of two elements."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        a, b = (_joined(builder, each, 2) for each in arguments)
        less = builder.sub(a, b)
        wrapped = builder.add(less, ir.Constant(LONG, MODULUS_128))
        return _split(builder, builder.select(builder.icmp_unsigned("<", a, b), wrapped, less), 2)

    return _pair()(x, y), code


def _accumulated(builder: Any, total: Any, addend: Any) -> Any:
    """Five words plus 256 bits."""
    name = "llvm.uadd.with.overflow.i256"
    both = ir.LiteralStructType([LONG, ir.IntType(1)])
    add_long = builder.module.globals.get(name) or ir.Function(
        builder.module, ir.FunctionType(both, [LONG, LONG]), name
    )
    found = builder.call(add_long, [_joined(builder, total, 4), addend])
    top = builder.add(builder.extract_value(total, 4), builder.zext(builder.extract_value(found, 1), WORD))
    return _split(builder, builder.extract_value(found, 0), 4, top)


@_operation
def add_product(_typing: Any, total: Any, x: Any, y: Any) -> Any:
    """A sum of products, and one product more; at most 2^32 of them."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return _accumulated(builder, arguments[0], _product(builder, arguments[1], arguments[2]))

    return _five()(total, x, y), code


@_operation
def add_element(_typing: Any, total: Any, x: Any) -> Any:
    """A sum, and one element more."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return _accumulated(builder, arguments[0], _joined(builder, arguments[1], 2))

    return _five()(total, x), code


@_operation
def reduced128(_typing: Any, total: Any) -> Any:
    """A sum of products, divided by R; its fifth word is below 2^32."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        top = builder.zext(builder.extract_value(arguments[0], 4), LONG)
        rest = _divided_by_r(builder, _joined(builder, arguments[0], 4))
        folded = builder.mul(top, ir.Constant(LONG, (1 << 128) % MODULUS_128))
        number = builder.add(rest, folded)
        for _ in range(2):
            number = _less_modulus(builder, number)
        return _split(builder, number, 2)

    return _pair()(total), code


@_operation
def nothing128(_typing: Any) -> Any:
    """An empty sum."""

    def code(_context: Any, _builder: Any, _signature: Any, _arguments: Any) -> Any:
        return ir.Constant(ir.ArrayType(WORD, 5), None)

    return _five()(), code


@compiled
def load128(vector: Words, index: int) -> tuple[int, int]:  # pragma: no cover - compiled
    """An element of a vector, uint64[n, 2]."""
    return vector[index, 0], vector[index, 1]


@compiled
def store128(vector: Words, index: int, x: tuple[int, int]) -> None:  # pragma: no cover - compiled
    """Put an element into a vector."""
    vector[index, 0], vector[index, 1] = x


@intrinsic
def multiply_add(_typing: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """The low and the high word of a b + c + d, of four words: it never overflows."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        double = ir.IntType(128)
        x, y, z, w = (builder.zext(argument, double) for argument in arguments)
        total = builder.add(builder.add(builder.mul(x, y), z), w)
        high = builder.lshr(total, ir.Constant(double, 64))
        words = [builder.trunc(word, ir.IntType(64)) for word in (total, high)]
        return context.make_tuple(builder, signature.return_type, words)

    if (a, b, c, d) != (types.uint64,) * 4:
        return None
    pair: Any = types.UniTuple(types.uint64, 2)  # type: ignore[no-untyped-call]
    return pair(a, b, c, d), code


Element = tuple[np.uint64, np.uint64, np.uint64, np.uint64]
LongSum = tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64]

_multiply_add: Any = multiply_add
_ONE, _NINETEEN, _FOLD = np.uint64(1), np.uint64(19), np.uint64(38)
_TOP_BIT = np.uint64(63)
_TOP = np.uint64(2**63 - 1)
_ALL = np.uint64(2**64 - 1)
_LEAST = np.uint64(2**64 - 19)


@compiled
def product255(a: Element, b: Element) -> Element:  # pragma: no cover - compiled
    """The product of numbers below 2^256: below 2^255 + 2^11, perhaps not below the modulus."""
    a0, a1, a2, a3 = a
    b0, b1, b2, b3 = b
    p0, c = _multiply_add(a0, b0, _ZERO, _ZERO)
    p1, c = _multiply_add(a0, b1, c, _ZERO)
    p2, c = _multiply_add(a0, b2, c, _ZERO)
    p3, p4 = _multiply_add(a0, b3, c, _ZERO)
    p1, c = _multiply_add(a1, b0, p1, _ZERO)
    p2, c = _multiply_add(a1, b1, p2, c)
    p3, c = _multiply_add(a1, b2, p3, c)
    p4, p5 = _multiply_add(a1, b3, p4, c)
    p2, c = _multiply_add(a2, b0, p2, _ZERO)
    p3, c = _multiply_add(a2, b1, p3, c)
    p4, c = _multiply_add(a2, b2, p4, c)
    p5, p6 = _multiply_add(a2, b3, p5, c)
    p3, c = _multiply_add(a3, b0, p3, _ZERO)
    p4, c = _multiply_add(a3, b1, p4, c)
    p5, c = _multiply_add(a3, b2, p5, c)
    p6, p7 = _multiply_add(a3, b3, p6, c)
    p0, c = _multiply_add(p4, _FOLD, p0, _ZERO)  # 2^256 is 38
    p1, c = _multiply_add(p5, _FOLD, p1, c)
    p2, c = _multiply_add(p6, _FOLD, p2, c)
    p3, c = _multiply_add(p7, _FOLD, p3, c)
    return carried((p0, p1, p2, p3), (c << _ONE | p3 >> _TOP_BIT) * _NINETEEN)


@compiled
def accumulated255(total: LongSum, x: Element) -> LongSum:  # pragma: no cover - compiled
    """A sum of numbers below 2^256, not reduced, and one more."""
    s0 = total[0] + x[0]
    c = np.uint64(s0 < x[0])
    s1 = total[1] + x[1]
    t1 = s1 + c
    c = np.uint64(s1 < x[1]) | np.uint64(t1 < c)
    s2 = total[2] + x[2]
    t2 = s2 + c
    c = np.uint64(s2 < x[2]) | np.uint64(t2 < c)
    s3 = total[3] + x[3]
    t3 = s3 + c
    return s0, t1, t2, t3, total[4] + (np.uint64(s3 < x[3]) | np.uint64(t3 < c))


@compiled
def reduced255(total: LongSum) -> Element:  # pragma: no cover - compiled
    """A sum of fewer than 2^50 numbers, as an element."""
    return canonical255(folded(total[:4], total[4] << _ONE | total[3] >> _TOP_BIT))


@compiled
def folded(x: Element, over: np.uint64) -> Element:  # pragma: no cover - compiled
    """The lowest 255 bits of x and 2^255 times a small number, modulo 2^255 - 19; below 2^255."""
    x = carried(x, over * _NINETEEN)
    return carried(x, (x[3] >> _TOP_BIT) * _NINETEEN)


@compiled
def carried(x: Element, more: np.uint64) -> Element:  # pragma: no cover - compiled
    """The lowest 255 bits of x, plus a small number."""
    x0 = x[0] + more
    x1 = x[1] + np.uint64(x0 < more)
    x2 = x[2] + np.uint64(x1 < x[1])
    x3 = (x[3] & _TOP) + np.uint64(x2 < x[2])
    return x0, x1, x2, x3


@compiled
def sum255(a: Element, b: Element) -> Element:  # pragma: no cover - compiled
    """The sum of numbers below 2^255: below 2^255 too, perhaps not below the modulus."""
    x0 = a[0] + b[0]
    y1 = a[1] + np.uint64(x0 < a[0])
    x1 = y1 + b[1]
    y2 = a[2] + (np.uint64(y1 < a[1]) | np.uint64(x1 < y1))
    x2 = y2 + b[2]
    x3 = a[3] + b[3] + (np.uint64(y2 < a[2]) | np.uint64(x2 < y2))
    return folded((x0, x1, x2, x3), x3 >> _TOP_BIT)


@compiled
def canonical255(x: Element) -> Element:  # pragma: no cover - compiled
    """Four words below 2^255 brought below the modulus: there are 19 numbers that are not."""
    return x if below255(x) else (x[0] - _LEAST, _ZERO, _ZERO, _ZERO)


@compiled
def below255(x: Element) -> bool:  # pragma: no cover - compiled
    """Whether four words below 2^255 are below 2^255 - 19."""
    return bool(x[3] < _TOP or x[2] < _ALL or x[1] < _ALL or x[0] < _LEAST)


@compiled
def element255(x: Words, i: int) -> Element:  # pragma: no cover - compiled
    """A row of four words."""
    return x[i, 0], x[i, 1], x[i, 2], x[i, 3]


@compiled
def store255(value: Element, x: Words, i: int) -> None:  # pragma: no cover - compiled
    """Write a row of four words."""
    x[i, 0], x[i, 1], x[i, 2], x[i, 3] = value


@compiled
def negative255(x: Element) -> Element:  # pragma: no cover - compiled
    """Zero minus an element that is below the modulus."""
    if not x[0] | x[1] | x[2] | x[3]:
        return x
    y0 = _LEAST - x[0]
    b0 = np.uint64(x[0] > _LEAST)
    y1 = _ALL - x[1] - b0
    b1 = np.uint64(x[1] > _ALL - b0)
    y2 = _ALL - x[2] - b1
    b2 = np.uint64(x[2] > _ALL - b1)
    return y0, y1, y2, _TOP - x[3] - b2


@compiled
def add_into255(total: Words, more: Words) -> None:  # pragma: no cover - compiled
    """Add a vector to another, in place: arrays uint64[n, 4]."""
    for i in range(total.shape[0]):
        store255(canonical255(sum255(element255(total, i), element255(more, i))), total, i)
