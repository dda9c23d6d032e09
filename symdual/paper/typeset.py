"""LaTeX as the paper writes it, to MathML: the paper's own macros are expanded first."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import cache
from xml.etree import ElementTree

from latex2mathml.converter import convert

MACROS = {
    r"\qqqq": r"\qquad\qquad",
    r"\qq": r"\qquad",
    r"\q": r"\quad",
    r"\g": r"\,|\,",
    r"\de": r"\partial",
    r"\Exp": r"\mathbb{E}",
    r"\cov": r"\operatorname{cov}",
    r"\diag": r"\operatorname{diag}",
    r"\tr": r"\operatorname{tr}",
    r"\blkdiag": r"\operatorname{blkdiag}",
    r"\const": r"\operatorname{const}",
    r"\N": r"\mathcal{N}",
    r"\T": r"^{\intercal}",
    r"\vec": r"\boldsymbol",
    r"\Id": r"\boldsymbol{I}",
    r"\ce": r":=",
    r"\equalscolon": r"=:",
    r"\Re": r"\mathbb{R}",
    r"\inv": r"^{-1}",
    r"\An": r"\bar{A}",
    r"\Bn": r"\bar{B}",
    r"\Kn": r"\bar{K}",
    r"\pn": r"\bar{p}",
    r"\un": r"\bar{u}",
    r"\zn": r"\bar{z}",
    r"\Jn": r"\bar{J}",
    r"\Ap": r"\tilde{A}",
    r"\Bp": r"\tilde{B}",
    r"\gp": r"\tilde{g}",
    r"\Kp": r"\tilde{K}",
    r"\pp": r"\tilde{p}",
    r"\Wp": r"\tilde{W}",
    r"\dx": r"\Delta x",
    r"\dz": r"\Delta z",
    r"\dhx": r"\Delta \hat{x}",
    r"\dhz": r"\Delta \hat{z}",
    r"\du": r"\Delta u",
    r"\dJ": r"\Delta J",
    r"\sbk": r"\sigma^2_{k}",
    r"\sbkp": r"\sigma^2_{k+1}",
    r"\mbk": r"\mu_{k}",
    r"\mbkp": r"\mu_{k+1}",
    r"\uk": r"u_k",
    r"\L": r"\Lambda",
    r"\cL": r"\mathcal{L}",
    r"\t": r"\theta",
    r"\tt": r"\theta\theta",
    r"\CE": r"\mathrm{CE}",
    r"\OF": r"\mathrm{OF}",
    r"\BEB": r"\mathrm{BEB}",
    r"\SE": r"\mathrm{SE}",
    r"\P": r"\mathcal{P}",
    r"\Q": r"\mathcal{Q}",
    r"\R": r"\mathcal{R}",
    r"\K": r"\mathcal{K}",
    r"\F": r"\mathcal{F}",
    r"\G": r"\mathcal{G}",
    r"\s": r"\sigma",
    r"\w": r"\omega",
    r"\to": r"\rightarrow",
}
"""The macros that the formulas use, as the paper's preamble defines them."""

_COMMAND = re.compile(r"\\[A-Za-z]+")
_FRACTION = re.compile(r"\\nicefrac\{([^{}]*)\}\{([^{}]*)\}")
_MATRIX_BEGIN = re.compile(r"\\begin\{([bp]matrix|cases)\}")
_MATRIX_END = re.compile(r"\\end\{([bp]matrix|cases)\}")
ROW = r" \\ "
_ENVIRONMENT = re.compile(r"\\(begin|end)\{[a-z]*\}")


def expand(latex: str) -> str:
    """Put the definitions of the paper's macros in their places."""
    text = _COMMAND.sub(lambda found: _defined(found.group()), latex)
    return _FRACTION.sub(r"{\1/\2}", text)


def _defined(command: str) -> str:
    if command not in MACROS:
        return command
    # A space keeps the definition apart from a letter that follows; an argument or index may follow directly.
    return MACROS[command] + " "


def is_sentence(latex: str) -> bool:
    """Whether the text is a sentence, perhaps with formulas in it, and not one formula."""
    return "$" in latex or latex.startswith(r"\text{")


def standalone(latex: str) -> str:
    """A formula that any LaTeX can set: macros expanded, rows in an alignment of their own."""
    return " ".join(_in_rows(expand(latex)).replace("{split}", "{aligned}").split())


def sentence(latex: str) -> str:
    """The words of a sentence, its formulas between dollar signs."""
    whole = re.fullmatch(r"\\text\{(.*)\}", latex, flags=re.S)
    plain = re.sub(r"\\emph\{([^{}]*)\}", r"\1", latex if whole is None else whole.group(1))
    return " ".join(expand(plain).replace("``", "\u201c").replace("''", "\u201d").split())


def display(latex: str) -> str:
    """A formula, or a sentence with formulas in it, as HTML."""
    if is_sentence(latex):
        return _sentence(latex)
    return _formula(_in_rows(_grouped(expand(latex))), block=True)


def _sentence(latex: str) -> str:
    whole = re.fullmatch(r"\\text\{(.*)\}", latex, flags=re.S)
    text = latex if whole is None else whole.group(1)
    in_math = whole is None and text.startswith("\\")
    parts = []
    for position, part in enumerate(text.split("$")):
        if (position % 2 == 0) is in_math:
            parts.append(_formula(expand(part), block=False))
        else:
            plain = re.sub(r"\\emph\{([^{}]*)\}", r"\1", part).replace("``", "\u201c").replace("''", "\u201d")
            parts.append(html.escape(" ".join(plain.split())))
    return "<p>" + " ".join(part for part in parts if part) + "</p>"


def _grouped(latex: str) -> str:
    """Every matrix in braces of its own: its brackets then take its own height, and a power belongs to all of it."""
    return _MATRIX_END.sub(r"\\end{\1}}", _MATRIX_BEGIN.sub(r"{\\begin{\1}", latex))


def _in_rows(latex: str) -> str:
    """A formula of several rows, or one row of an alignment, as an alignment of its own."""
    rows = _outer_rows(latex)
    if len(rows) == 1 and "&" not in _outside_environments(latex):
        return latex
    aligned = [row if "&" in _outside_environments(row) else f"& {row}" for row in rows]
    return rf"\begin{{split}} {ROW.join(aligned)} \end{{split}}"


def _pieces(latex: str) -> Iterator[tuple[bool, str]]:
    """The text cut at its environments; each piece with whether it stands outside of all of them."""
    depth, start = 0, 0
    for found in _ENVIRONMENT.finditer(latex):
        yield depth == 0, latex[start : found.start()]
        depth += 1 if found.group(1) == "begin" else -1
        yield False, found.group()
        start = found.end()
    yield depth == 0, latex[start:]


def _outside_environments(latex: str) -> str:
    return "".join(piece for outside, piece in _pieces(latex) if outside)


def _outer_rows(latex: str) -> list[str]:
    rows = [""]
    for outside, piece in _pieces(latex):
        first, *others = piece.split(r"\\") if outside else [piece]
        rows[-1] += first
        rows += others
    return [row for row in rows if row.strip()]


@cache
def _formula(latex: str, block: bool) -> str:
    return _with_drawn_brackets(_with_letters(convert(latex, display="block" if block else "inline")))


_MATHML = "http://www.w3.org/1998/Math/MathML"
_DRAWN = {("(", ")"): "round", ("[", "]"): "square"}
_TALL = {f"{{{_MATHML}}}{name}" for name in ("mtable", "mfrac", "munder", "munderover")}


def _with_drawn_brackets(mathml: str) -> str:
    """Brackets around tall things as borders of their row, which grow with it whatever fonts the reader has."""
    ElementTree.register_namespace("", _MATHML)
    root = ElementTree.fromstring(mathml)
    for row in root.iter(f"{{{_MATHML}}}mrow"):
        parts = list(row)
        ends = (parts[0].text, parts[-1].text) if len(parts) > 2 else ("", "")
        kind = _DRAWN.get((ends[0] or "", ends[1] or ""))
        if kind and any(inner.tag in _TALL for part in parts[1:-1] for inner in part.iter()):
            row.remove(parts[0])
            row.remove(parts[-1])
            row.set("class", kind)
    return ElementTree.tostring(root, encoding="unicode")


_STYLED = re.compile(r'<(mi|mn) mathvariant="([a-z-]+)">([^<])</\1>')
_ALPHABETS = {
    ("bold-italic", "A"): 0x1D468,
    ("bold-italic", "a"): 0x1D482,
    ("bold", "A"): 0x1D400,
    ("bold", "a"): 0x1D41A,
    ("bold", "0"): 0x1D7CE,
    ("bold-italic", "0"): 0x1D7CE,
    ("script", "A"): 0x1D49C,
}
_SCRIPT_EXCEPTIONS = dict(
    zip("BEFHILMR", map(chr, (0x212C, 0x2130, 0x2131, 0x210B, 0x2110, 0x2112, 0x2133, 0x211B)), strict=True)
)


def _with_letters(mathml: str) -> str:
    """Browsers ignore ``mathvariant``: use the letters of the mathematical alphabets instead."""
    return _STYLED.sub(lambda found: f"<{found[1]}>{_letter(found[2], found[3])}</{found[1]}>", mathml)


def _letter(style: str, character: str) -> str:
    if style == "script" and character in _SCRIPT_EXCEPTIONS:
        return _SCRIPT_EXCEPTIONS[character]
    for first in "Aa0":
        base = _ALPHABETS.get((style, first))
        offset = ord(character) - ord(first)
        if base is not None and 0 <= offset < (10 if first == "0" else 26):
            return chr(base + offset)
    return character
