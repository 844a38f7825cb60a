"""Products of two words of 64 bits, whole: an instruction that numba has no name for. This module imports numba."""

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic


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
