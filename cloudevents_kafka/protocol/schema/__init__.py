"""How messages are declared: types, versions, fields."""
