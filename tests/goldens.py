"""The generator's output that is committed: eight packages whole, and digests of the files of all others.

    python tests/goldens.py                   # writes both; `make generated` does
    python tests/goldens.py pendulum [main]   # shows how a package differs from that of HEAD, or of another revision

The eight have every module and every function that any package of
the project has, and 182 of the 190 places where templates branch; no other eight have more.

| package | alone among the eight in having |
|---|---|
| bent | a square-root filter; moments of second order, taken anew; unknowns that drift together |
| heated | signals with a forecast, with an iterated filter the ones before too; a cost of squares; states with bounds |
| lit_iterated | noise that depends on the state; an iterated filter; a curved measurement |
| narrow | discrete inputs; constraints with unknowns in low-rank form |
| reactor | constraints on continuous inputs; a cost with a Hessian of its own |
| rough | Gaussian processes |
| squeezed | a cost whose Hessian is made convex |
| staged | a long step that is differentiated by stages; two inputs; a recalibrated filter that finds outliers |
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # of this tree, wherever another one is installed

import symdual  # noqa: E402
from symdual.common.parts import PARTS  # noqa: E402

GENERATED = ROOT / "generated"
DIGESTS = GENERATED / "digests.txt"
WHOLE = ("bent", "heated", "lit_iterated", "narrow", "reactor", "rough", "squeezed", "staged")
MODEL_FILES = tuple(
    file
    for folder in ("symdual/paper/models", "examples", "tests/models")
    for file in sorted((ROOT / folder).glob("[!_]*.py"))
)

Files = Mapping[str, bytes]


@cache
def model_file(name: str) -> Path:
    """The file of the project that has the model of this name."""
    found = [f for f in MODEL_FILES if f.stem == name or re.search(rf"^{name} = ", f.read_text(), re.MULTILINE)]
    return found[0]


def files_of(package: Path) -> dict[str, bytes]:
    """The files of a package; what Python and numba keep with them is no part of it."""
    return {
        str(file.relative_to(package)): file.read_bytes()
        for file in sorted(package.rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts
    }


def packages(folders: Iterable[Path]) -> dict[str, dict[str, bytes]]:
    """The files of each package, by its name."""
    return {folder.name: files_of(folder) for folder in folders}


def body(file: Path, name: str) -> str:
    """A code file of a package without its header and without the package's name: packages share many bodies."""
    return file.read_text().split("\n", 2)[2].replace(f"`{name}`", "`model`")


def distinct(folders: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """The code files of packages with their bodies, each body once."""
    met = set[str]()
    for package, file in ((one, file) for one in folders for file in sorted(one.rglob("*.py"))):
        text = body(file, package.name)
        if text not in met:
            met.add(text)
            yield file, text


def digests(name: str, files: Files) -> dict[str, str]:
    """A digest for each file of a package.

    The digest of the package, which all code files carry, is taken out first: so a change shows in the files that
    have changed, and in the manifest, which has the digests of all files as they are.
    """
    whole = json.loads(files["manifest.json"])["package_digest"].encode()
    return {f"{name}/{file}": hashlib.sha256(text.replace(whole, b"")).hexdigest()[:16] for file, text in files.items()}


def committed_digests() -> dict[str, str]:
    """What generated/digests.txt says, by package and file."""
    return dict(line.split() for line in DIGESTS.read_text().splitlines())


def write() -> None:
    """Write generated/ again."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for file in MODEL_FILES:
            symdual.generate(file, folder, parts=PARTS)
        shutil.rmtree(GENERATED, ignore_errors=True)
        for name in WHOLE:
            shutil.copytree(folder / name, GENERATED / name)
        others = packages(one for one in sorted(folder.iterdir()) if one.name not in WHOLE)
    lines = [line for name, files in others.items() for line in sorted(digests(name, files).items())]
    DIGESTS.write_text("".join(f"{file} {digest}\n" for file, digest in lines))


def show(name: str, revision: str) -> None:
    """Show how the package of a model differs from that of a revision."""
    file = model_file(name).relative_to(ROOT)
    code = f"import sys, symdual; symdual.generate(sys.argv[1], sys.argv[2], parts={list(PARTS)})"
    with tempfile.TemporaryDirectory() as place:
        past = Path(place) / "past"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", past, revision], cwd=ROOT, check=True)
        try:
            for root, side in ((past, "before"), (ROOT, "after")):
                command = [sys.executable, "-c", code, str(file), f"{place}/{side}"]
                subprocess.run(command, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, check=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", past], cwd=ROOT, check=True)
        subprocess.run(["git", "diff", "--no-index", f"before/{name}", f"after/{name}"], cwd=place, check=False)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        write()
    else:
        show(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "HEAD")
