"""The pages that symdual writes itself: derivations, decisions, the paper's formulas and the paper's experiments.

They are made while the rest of the site is read, below `out/docs/extra`, and copied into it as they are. They are made
again only when something that they depend on has changed.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "out/docs"
EXTRA, WORK = PLACE / "extra", PLACE / "work"
MODELS = {
    "boat": ROOT / "docs/models/boat.py",
    "pendulum": ROOT / "examples/pendulum.py",
    "vehicle": ROOT / "examples/vehicle.py",
}
waiting: list[Future[None]] = []


def commands() -> dict[str, list[str]]:
    """The command that writes each page, by the page's place in the site."""
    both = ["--controller", "ce", "--controller", "dual", "--runs", "8", "--force"]
    html = ["--html", "{file}"]
    shown = {f"derivations/{name}.html": ["show", str(m), "--no-check", *html] for name, m in MODELS.items()}
    return shown | {
        "decisions/boat.html": ["simulate", str(MODELS["boat"]), *both, *html],
        "paper/formulas.html": ["paper", "check", *html],
        "paper/experiments.html": ["paper", "run", "--quick", "--resume", "-o", str(PLACE / "paper"), *html],
    }


def begin(app: Sphinx, config: Config) -> None:
    """Start to write all pages that are missing or out of date, one after another."""
    WORK.mkdir(parents=True, exist_ok=True)
    digest = _digest()
    one = ThreadPoolExecutor(1)
    waiting[:] = [one.submit(_make, place, command, digest) for place, command in commands().items()]
    one.shutdown(wait=False)


def finish(app: Sphinx, environment: BuildEnvironment) -> None:
    """Wait for them, before anything is written."""
    for page in waiting:
        page.result()


def _make(place: str, command: list[str], digest: str) -> None:
    file, note = EXTRA / place, PLACE / "digests" / place
    if file.exists() and note.exists() and note.read_text() == digest:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    filled = [part.format(file=file) for part in command]
    done = subprocess.run(
        [sys.executable, "-m", "symdual", *filled],
        cwd=WORK,
        capture_output=True,
        text=True,
        env={**os.environ, "MPLBACKEND": "agg"},
    )
    if done.returncode:
        raise ExtensionError(f"symdual {' '.join(filled)} ended with {done.returncode}: {done.stderr[-2000:]}")
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(digest)


def _digest() -> str:
    """Of everything that the pages are made from."""
    found = hashlib.sha256()
    for folder in ("symdual", "templates", "examples", "docs/models"):
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in (".py", ".jinja", ".j2", ".css", ".js", ".json"):
                found.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return found.hexdigest()


def setup(app: Sphinx) -> dict[str, Any]:
    """Begin before the site is read, and wait before it is written."""
    EXTRA.mkdir(parents=True, exist_ok=True)
    app.config.html_extra_path = [*app.config.html_extra_path, str(EXTRA)]
    app.connect("config-inited", begin)
    app.connect("env-updated", finish)
    return {"parallel_read_safe": True}
