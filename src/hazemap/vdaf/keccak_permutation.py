"""Keccak-p[1600, 12] on eight states at once (FIPS 202, 3.3; RFC 9861, 2.1). This module imports numba.

The states are an array uint64[25, 8]: lane x + 5 y of state `i` is `states[x + 5 * y, i]`. One vector of eight words
holds a lane of all; where registers are narrower, the compiler cuts it.
"""

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from hazemap.machine_code.arrays import Words
from hazemap.machine_code.jit import compiled
from hazemap.vdaf.turboshake128 import ROUND_CONSTANTS, STEPS

STATES = 8


def _permutation(width: int) -> Any:
    """The permutation of `width` states, as an intrinsic over an array with room for them in each row."""

    @intrinsic
    def permute(_typing: Any, states: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            word, index = ir.IntType(64), ir.IntType(64)
            vector = ir.VectorType(word, width)
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            places = [
                builder.bitcast(builder.gep(data, [ir.Constant(index, width * lane)]), vector.as_pointer())
                for lane in range(25)
            ]
            name = f"llvm.fshl.v{width}i64"
            rotate = builder.module.globals.get(name) or ir.Function(
                builder.module, ir.FunctionType(vector, [vector] * 3), name
            )

            def rotated(x: Any, by: int) -> Any:
                return builder.call(rotate, [x, x, ir.Constant(vector, [by] * width)])

            def sum_of(*terms: Any) -> Any:
                total = terms[0]
                for term in terms[1:]:
                    total = builder.xor(total, term)
                return total

            a = [builder.load(place, align=8) for place in places]
            for constant in ROUND_CONSTANTS:
                parity = [sum_of(*a[x::5]) for x in range(5)]
                theta = [sum_of(parity[(x + 4) % 5], rotated(parity[(x + 1) % 5], 1)) for x in range(5)]
                a = [sum_of(a[i], theta[i % 5]) for i in range(25)]
                moved = list(a)
                for here, there, by in STEPS:
                    moved[there] = rotated(a[here], by)
                ones = ir.Constant(vector, [-1] * width)
                a = [
                    sum_of(
                        moved[i],
                        builder.and_(builder.xor(moved[i - i % 5 + (i + 1) % 5], ones), moved[i - i % 5 + (i + 2) % 5]),
                    )
                    for i in range(25)
                ]
                a[0] = sum_of(a[0], ir.Constant(vector, [constant] * width))
            for lane, place in zip(a, places, strict=True):
                builder.store(lane, place, align=8)
            return context.get_dummy_value()

        return types.void(states), code

    return permute


_eight = _permutation(STATES)
_one = _permutation(1)


@compiled
def permute_eight(states: Words) -> None:  # pragma: no cover - compiled
    """Permute eight states, uint64[25, 8], in place."""
    _eight(states)


@compiled
def permute_one(state: Words) -> None:  # pragma: no cover - compiled
    """Permute one state, uint64[25, 1], in place."""
    _one(state)
