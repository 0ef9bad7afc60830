"""What may be shown of settings and URLs: `settings` by name and form, `urls` without credentials."""
