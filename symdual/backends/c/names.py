"""Names in C: what may be a prefix, and what becomes of names that mean something else there."""

from __future__ import annotations

import re

from symdual.common.errors import SymdualError

KEYWORDS = frozenset(
    """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    alignas alignof and and_eq asm bitand bitor bool catch class compl concept consteval constexpr constinit const_cast
    co_await co_return co_yield decltype delete dynamic_cast explicit export false friend module mutable namespace new
    noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast requires static_assert
    static_cast template this thread_local throw true try typeid typename typeof typeof_unqual using virtual wchar_t xor
    xor_eq complex imaginary fortran near far
    """.split()
)

#: functions of math.h, which also exist with an f or an l behind them
_MATHEMATICS = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor fma fmax
    fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint
    nextafter nexttoward pow remainder remquo rint round scalbln scalbn sin sinh sqrt tan tanh tgamma trunc
    gamma drem significand finite exp10 pow10 sincos j0 j1 jn y0 y1 yn
    """.split()

#: names that the standard headers of C may define as functions, macros or types
LIBRARY = frozenset(
    [name + end for name in _MATHEMATICS for end in ("", "f", "l")]
    + """
    signbit signgam isnan isinf isfinite isnormal fpclassify isgreater isgreaterequal isless islessequal islessgreater
    isunordered NAN INFINITY HUGE_VAL HUGE_VALF HUGE_VALL HUGE MAXFLOAT DOMAIN SING OVERFLOW UNDERFLOW PLOSS TLOSS
    math_errhandling MATH_ERRNO MATH_ERREXCEPT NULL EOF errno
    abs labs index rindex read write time clock signal main exit abort free malloc printf assert stdin stdout stderr
    I double_t float_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t
    """.split()
)
#: macros that a compiler may define by itself: they replace a name that is the same, not one that begins like it
_OF_COMPILERS = frozenset({"unix", "linux", "i386", "arm", "mips", "sun", "vax"})
#: what families of such names begin with: FP_NAN, INT32_MAX, UINT64_C, SIZE_WIDTH
_CLANS = re.compile(r"FP|U?INT(_FAST|_LEAST)?\d+|U?INT(MAX|PTR)|PTRDIFF|SIG_ATOMIC|SIZE|WCHAR|WINT|FLT|L?DBL")
_FAMILIES = re.compile(rf"(M|{_CLANS.pattern})_\w+")  # and M_PI

#: standard headers, which a file of the same name would stand in front of
_HEADERS = frozenset(
    """
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic
    stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype
    """.split()
)

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_LONGEST_PREFIX = 31  # characters that every compiler of C99 tells apart in names that are linked


def checked_prefix(prefix: str) -> str:
    """A prefix for all names, or a sentence that says why it cannot be one."""
    if not _IDENTIFIER.fullmatch(prefix):
        raise SymdualError(f'the prefix "{prefix}" is no name in C: it needs letters, digits and _, a letter first')
    if prefix in KEYWORDS or prefix in LIBRARY:
        raise SymdualError(
            f'the prefix "{prefix}" is a reserved word of C or a name of its library: --prefix takes another'
        )
    if prefix.lower() in _HEADERS:
        raise SymdualError(
            f'the prefix "{prefix}" would write a file {prefix}.h, the name of a header of C: --prefix takes another'
        )
    if prefix.endswith("_") or "__" in prefix:
        raise SymdualError(
            f'the prefix "{prefix}" would make names with two _ in a row, which C++ keeps for itself: --prefix takes '
            "another"
        )
    if _CLANS.fullmatch(upper := prefix.upper()):
        raise SymdualError(
            f'the prefix "{prefix}" would define macros {upper}_..., as the headers of C do: --prefix takes another'
        )
    if len(prefix) > _LONGEST_PREFIX:
        raise SymdualError(f'the prefix "{prefix}" has more than {_LONGEST_PREFIX} characters')
    return prefix


def safe(name: str) -> str:
    """A local name that is neither a keyword, nor a name of the library, nor one that C keeps for itself."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else f"u{ord(c):x}" for c in name)
    if plain.startswith("__") or re.match(r"_[A-Z]", plain):
        plain = f"v{plain}"
    taken = plain in KEYWORDS or plain in LIBRARY or plain in _OF_COMPILERS or _FAMILIES.fullmatch(plain)
    return f"{plain}_" if taken else plain


def snake(name: str) -> str:
    """The name of a record or a class as C has it: EpisodeLog and EPISODE_LOG become episode_log."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def remark(text: str) -> str:
    """A text that may stand in a comment: it cannot end it, begin another, or hold what an old compiler replaces."""
    text = "".join(c if c == "\n" or c.isprintable() else " " for c in text)
    return text.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?").replace("\\", "|")
