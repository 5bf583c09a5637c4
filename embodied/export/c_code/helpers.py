"""C functions that generated code calls; only those that a policy needs are written into its file."""

from __future__ import annotations

_DOT = """
static int32_t dot_KIND(const TYPE *x, const int8_t *w, int count)
{
    int32_t sum = 0;
    for (int i = 0; i < count; ++i) sum += x[i] * w[i];
    return sum;
}
"""

_DENSE_TO_BYTES = """
static void dense_KIND_TARGET(const TYPE *x, int inputs, const int8_t *w, const int32_t *bias, int outputs,
                        const int32_t *multiplier, const uint8_t *shift, int zero, int low, int high, OUT *y)
{
    for (int o = 0; o < outputs; ++o, w += inputs) {
        const int32_t value = scale_q31(bias[o] + dot_KIND(x, w, inputs), multiplier[o], shift[o]) + zero;
        y[o] = (OUT)(value < low ? low : value > high ? high : value);
    }
}
"""

_DENSE_TO_FLOATS = """
static void dense_KIND_f32(const TYPE *x, int inputs, const int8_t *w, const int32_t *bias, int outputs,
                         const float *scale, const float *offset, float *y)
{
    for (int o = 0; o < outputs; ++o, w += inputs) {
        const float value = (float)(bias[o] + dot_KIND(x, w, inputs)) * scale[o];
        y[o] = offset ? value + offset[o] : value;
    }
}
"""

_QUANTIZE = """
/* Halves go to the even neighbour: rintf in the rounding mode that every C program starts in. */
static int quantize(float value, float scale, int zero, int low, int high)
{
    const float unit = value / scale;
    if (!(unit > (float)(low - zero))) return low;
    if (unit >= (float)(high - zero)) return high;
    return (int)rintf(unit) + zero;
}
"""

_ROUND_24 = """
/* Rounds to 24 significant bits, halves to even: what a product of floats keeps. */
static uint64_t round_24(uint64_t value)
{
    int drop = 0;
    while ((value >> drop) >> 24) ++drop;
    if (drop == 0) return value;
    const uint64_t half = (uint64_t)1 << (drop - 1), rest = value & (half * 2 - 1);
    uint64_t kept = value >> drop;
    if (rest > half || (rest == half && (kept & 1))) ++kept;
    return kept << drop;
}
"""

_SCALE_Q31 = """
/* round(sum * multiplier / 2^shift), halves to even, equal to ONNX Runtime's float32 arithmetic in every bit.
   Only a product this close to a half can tell that floats round it to 24 bits before they round it to an integer. */
static int32_t scale_q31(int32_t sum, int32_t multiplier, int shift)
{
    const int32_t sign = sum < 0 ? -1 : 0; /* all bits or none: a branch here would be guessed wrong */
    uint64_t size = (uint64_t)(((int64_t)sum ^ sign) - sign);
    if (size >> 24) size = round_24(size);
    uint64_t product = size * (uint64_t)multiplier;
    const uint64_t half = (uint64_t)1 << (shift - 1), mask = half * 2 - 1;
    if (product >> shift >= 1024) return (1024 ^ sign) - sign; /* far outside of any byte */
    uint64_t rest = product & mask;
    if (rest + (half >> 13) >= half && rest <= half + (half >> 13)) {
        product = round_24(product);
        rest = product & mask;
    }
    const int32_t whole = (int32_t)(product >> shift);
    const int32_t up = (int32_t)(rest > half) | ((int32_t)(rest == half) & whole & 1);
    return ((whole + up) ^ sign) - sign;
}
"""

_TYPES = {"u8": "uint8_t", "s8": "int8_t"}

HELPERS: dict[str, str] = {
    "quantize": _QUANTIZE,
    "round_24": _ROUND_24,
    "scale_q31": _SCALE_Q31,
    **{f"dot_{k}": _DOT.replace("KIND", k).replace("TYPE", t) for k, t in _TYPES.items()},
    **{f"dense_{k}_f32": _DENSE_TO_FLOATS.replace("KIND", k).replace("TYPE", t) for k, t in _TYPES.items()},
    **{
        f"dense_{k}_{target}": _DENSE_TO_BYTES.replace("KIND", k)
        .replace("TARGET", target)
        .replace("TYPE", t)
        .replace("OUT", out)
        for k, t in _TYPES.items()
        for target, out in _TYPES.items()
    },
}
"""C text by name, in an order in which each stands after what it calls."""
