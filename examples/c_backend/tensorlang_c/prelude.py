"""What every generated C file begins with: types, memory, and the arithmetic that C lacks."""

PRELUDE = r"""#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef union { void *pointer; int64_t integer; } slot;

static inline void *allocate(int64_t size) { return malloc(size > 0 ? (size_t)size : 1); }
static inline void *allocate_zeroed(int64_t size) { return calloc(size > 0 ? (size_t)size : 1, 1); }
static inline void release(void *where) { free(*(void **)where); }

/* Floor division and its remainder; x / 0 and x % 0 are 0, and MIN / -1 wraps. */
#define DIVISION(T, U, SUFFIX) \
    static inline T floordiv_##SUFFIX(T a, T b) { \
        if (b == 0) return 0; \
        if (b == (T)-1 && (T)-1 < 0) return (T)(0 - (U)a); \
        T q = a / b; \
        return q - ((a % b != 0) && ((a < 0) != (b < 0))); \
    } \
    static inline T mod_##SUFFIX(T a, T b) { \
        if (b == 0 || (b == (T)-1 && (T)-1 < 0)) return 0; \
        T r = a % b; \
        return r && ((r < 0) != (b < 0)) ? r + b : r; \
    }
DIVISION(int8_t, uint8_t, i8) DIVISION(int16_t, uint16_t, i16)
DIVISION(int32_t, uint32_t, i32) DIVISION(int64_t, uint64_t, i64)
DIVISION(uint8_t, uint8_t, u8) DIVISION(uint16_t, uint16_t, u16)
DIVISION(uint32_t, uint32_t, u32) DIVISION(uint64_t, uint64_t, u64)

/* Powers by squaring; a negative exponent leaves 0 except for the bases 1 and -1. */
#define POWER(T, SUFFIX) \
    static inline T power_##SUFFIX(T a, T b) { \
        if (b < 0) return a == 1 ? 1 : a == (T)-1 ? (b % 2 ? (T)-1 : 1) : 0; \
        T result = 1; \
        for (; b > 0; b >>= 1, a = (T)(a * a)) if (b & 1) result = (T)(result * a); \
        return result; \
    }
POWER(int8_t, i8) POWER(int16_t, i16) POWER(int32_t, i32) POWER(int64_t, i64)
POWER(uint8_t, u8) POWER(uint16_t, u16) POWER(uint32_t, u32) POWER(uint64_t, u64)

/* Floats: NumPy's floor division and remainder, extremes that pass NaN on, ties to even. */
#define FLOATS(T, F, SUFFIX) \
    static inline T mod_##SUFFIX(T a, T b) { \
        T r = fmod##F(a, b); \
        if (r != 0 ? (b < 0) != (r < 0) : 0) r += b; \
        return r == 0 ? copysign##F(0, b) : r; \
    } \
    static inline T floordiv_##SUFFIX(T a, T b) { \
        if (b == 0) return a / b; \
        T r = fmod##F(a, b), q = (a - r) / b; \
        if (r != 0 && (b < 0) != (r < 0)) q -= 1; \
        if (q == 0) return copysign##F(0, a / b); \
        T f = floor##F(q); \
        return q - f > (T)0.5 ? f + 1 : f; \
    } \
    static inline T minimum_##SUFFIX(T a, T b) { return a != a || a < b ? a : b; } \
    static inline T maximum_##SUFFIX(T a, T b) { return a != a || a > b ? a : b; } \
    static inline T sign_##SUFFIX(T a) { return a != a ? a : (T)((a > 0) - (a < 0)); } \
    static inline T sigmoid_##SUFFIX(T a) { return 1 / (1 + exp##F(-a)); } \
    static inline T rsqrt_##SUFFIX(T a) { return 1 / sqrt##F(a); }
FLOATS(float, f, f32) FLOATS(double, , f64)

/* Float to integer saturates, and NaN becomes 0. */
#define SATURATE(T, LOW, HIGH, SUFFIX) \
    static inline T to_##SUFFIX(double a) { \
        if (a != a) return 0; \
        return a <= (double)(LOW) ? (LOW) : a >= (double)(HIGH) ? (HIGH) : (T)a; \
    }
SATURATE(int8_t, INT8_MIN, INT8_MAX, i8) SATURATE(int16_t, INT16_MIN, INT16_MAX, i16)
SATURATE(int32_t, INT32_MIN, INT32_MAX, i32) SATURATE(int64_t, INT64_MIN, INT64_MAX, i64)
SATURATE(uint8_t, 0, UINT8_MAX, u8) SATURATE(uint16_t, 0, UINT16_MAX, u16)
SATURATE(uint32_t, 0, UINT32_MAX, u32) SATURATE(uint64_t, 0, UINT64_MAX, u64)

/* An index that depends on data: the first that leaves its tensor is remembered. */
static inline bool inside(int64_t i, int64_t extent, int64_t site, int64_t *status) {
    if (0 <= i && i < extent) return true;
    if (status[0] < 0) { status[0] = site; status[1] = i; status[2] = extent; }
    return false;
}

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
"""
