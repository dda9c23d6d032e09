"""Independent derivations, by the id of the formula that they confront; none of them sees a transcription."""

from __future__ import annotations

from symdual.paper.case import Derivation, Undecidable
from symdual.paper.derivations import model

DERIVATIONS: dict[str, Derivation | Undecidable] = {**model.DERIVATIONS}
