"""How an exported controller looks on a small target: compiled for a Cortex-M, with the sizes of its sections."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from symdual.backends.c.compilation import WARNINGS
from symdual.backends.c.compilers import compile_files
from symdual.common.errors import SymdualError

COMPILER = "arm-none-eabi-gcc"
_PROCESSORS = {
    "float": ("Cortex-M4F", ("-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")),
    "double": ("Cortex-M7", ("-mcpu=cortex-m7", "-mfloat-abi=hard", "-mfpu=fpv5-d16")),
}


class Sections(NamedTuple):
    """Bytes of code and constants, of memory besides the controller, and of the deepest stack of one function."""

    processor: str
    code: int
    data: int
    stack: int


def sections(files: Mapping[str, str], real: str) -> Sections | str:
    """The sizes on a Cortex-M with a unit for these reals, or why there are none."""
    command, size = shutil.which(COMPILER), shutil.which("arm-none-eabi-size")
    if command is None or size is None:
        return f"{COMPILER} is not installed"
    processor, flags = _PROCESSORS[real]
    with tempfile.TemporaryDirectory() as own:
        folder = Path(own)
        for name, text in files.items():
            (folder / name).write_text(text)
        code = folder / "controller.o"
        given = ["-std=c99", "-Os", "-mthumb", *flags, *WARNINGS, "-fstack-usage", "-c"]
        try:
            compile_files([folder / name for name in files if name.endswith(".c")], given, code, (command,))
        except SymdualError as failure:  # it often has no headers of a C library
            return f"{COMPILER}: {failure}"
        printed = subprocess.run([size, str(code)], capture_output=True, text=True, check=True).stdout
        code_bytes, data, bss = (int(word) for word in printed.splitlines()[1].split()[:3])
        usage = [line.split("\t") for file in folder.glob("*.su") for line in file.read_text().splitlines()]
        return Sections(processor, code_bytes, data + bss, max((int(row[1]) for row in usage), default=0))
