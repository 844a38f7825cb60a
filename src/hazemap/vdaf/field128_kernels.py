"""Arithmetic of Field128 in machine code, for the loops of proofs. This module imports numba.

An element is a pair of words (low, high). `mul(x, y)` is Montgomery's product x · y / R with R = 2^128: constants are
kept as c · R, so that a constant times a plain element is plain. A sum of products is five words and reduced once.

p = 2^128 − 28 · 2^64 + 1 is 1 modulo 2^64, so that Montgomery's factor of a word w is −w. Nothing here branches on
elements.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from hazemap.machine_code.arrays import Words
from hazemap.machine_code.jit import compiled
from hazemap.vdaf.ntt_field import FIELD128

MODULUS = FIELD128.modulus
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
    modulus = ir.Constant(LONG, MODULUS)
    return builder.select(builder.icmp_unsigned(">=", number, modulus), builder.sub(number, modulus), number)


def _pair() -> Any:
    """The type of an element."""
    return _types.UniTuple(_types.uint64, 2)


def _five() -> Any:
    """The type of a sum of products."""
    return _types.UniTuple(_types.uint64, 5)


@_operation
def mul(_typing: Any, x: Any, y: Any) -> Any:
    """The product of two elements, divided by R."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return _split(builder, _less_modulus(builder, _divided_by_r(builder, _product(builder, *arguments))), 2)

    return _pair()(x, y), code


@_operation
def add(_typing: Any, x: Any, y: Any) -> Any:
    """The sum of two elements."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        total = builder.add(*(_joined(builder, each, 2) for each in arguments))
        return _split(builder, _less_modulus(builder, total), 2)

    return _pair()(x, y), code


@_operation
def sub(_typing: Any, x: Any, y: Any) -> Any:
    """The difference of two elements."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        a, b = (_joined(builder, each, 2) for each in arguments)
        less = builder.sub(a, b)
        wrapped = builder.add(less, ir.Constant(LONG, MODULUS))
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
def reduced(_typing: Any, total: Any) -> Any:
    """A sum of products, divided by R; its fifth word is below 2^32."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        top = builder.zext(builder.extract_value(arguments[0], 4), LONG)
        rest = _divided_by_r(builder, _joined(builder, arguments[0], 4))
        folded = builder.mul(top, ir.Constant(LONG, (1 << 128) % MODULUS))
        number = builder.add(rest, folded)
        for _ in range(2):
            number = _less_modulus(builder, number)
        return _split(builder, number, 2)

    return _pair()(total), code


@_operation
def nothing(_typing: Any) -> Any:
    """An empty sum."""

    def code(_context: Any, _builder: Any, _signature: Any, _arguments: Any) -> Any:
        return ir.Constant(ir.ArrayType(WORD, 5), None)

    return _five()(), code


@compiled
def load(vector: Words, index: int) -> tuple[int, int]:  # pragma: no cover - compiled
    """An element of a vector, uint64[n, 2]."""
    return vector[index, 0], vector[index, 1]


@compiled
def store(vector: Words, index: int, x: tuple[int, int]) -> None:  # pragma: no cover - compiled
    """Put an element into a vector."""
    vector[index, 0], vector[index, 1] = x
