"""The page that ``report`` writes: its parts in `page`, its drawings in `figures`, its elements in `html`."""
