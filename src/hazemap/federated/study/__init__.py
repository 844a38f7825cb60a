"""An analyst's side of interactive recipes: ask, look, ask on; over a server, or over a population in this process."""
