"""What a user writes: models, scenarios, unknowns and feature families."""
