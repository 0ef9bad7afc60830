"""The page that ``report`` writes: `page` builds it, `figures` draws charts, and `html` creates elements."""
