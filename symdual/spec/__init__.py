"""What a user writes: models, scenarios, unknowns and feature families; and what these ask of the generated code."""
