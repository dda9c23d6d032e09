"""Steps in forked children: new processes as far as compiled code is concerned, without new imports."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable
from typing import Any

#: what the steps returned, one after the other
results: list[Any] = []


def in_new_process(step: Callable[..., Any], *arguments: Any) -> None:
    """Run a step in a child, and keep what it returns."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, json.dumps(step(*arguments)).encode())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        results.append(json.loads(answer.read()))
    os.waitpid(child, 0)
