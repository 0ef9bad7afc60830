"""The page that ``report`` writes: `page` builds it, `figures` draws, and `html` creates elements."""
