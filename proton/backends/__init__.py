"""Back ends: a recipe of passes and the code generation behind it."""
