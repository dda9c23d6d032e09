"""Independent derivations, by the id of the formula that they confront; none of them imports a transcription."""

from __future__ import annotations

from symdual.paper.case import Derivation, Undecidable
from symdual.paper.derivations import (
    augmented,
    experiments,
    features,
    first_input,
    learning,
    model,
    multistep,
    nominal,
    perturbation,
    probing,
    remarks,
    toy,
)

DERIVATIONS: dict[str, Derivation | Undecidable] = {
    **model.DERIVATIONS,
    **toy.DERIVATIONS,
    **first_input.DERIVATIONS,
    **nominal.DERIVATIONS,
    **perturbation.DERIVATIONS,
    **remarks.DERIVATIONS,
    **learning.DERIVATIONS,
    **augmented.DERIVATIONS,
    **probing.DERIVATIONS,
    **experiments.DERIVATIONS,
    **multistep.DERIVATIONS,
    **features.DERIVATIONS,
}
