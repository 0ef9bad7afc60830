"""The page that ``report`` writes: `page` builds the page, `figures` draws, and `html` creates elements."""
