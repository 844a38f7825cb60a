# Loads a release of hazemap into R: `cells`, an sf data frame with a row for each cell, and `statement`, its promise.
# A .parquet needs the packages arrow, sf and jsonlite; its export as .gpkg or .geojson needs sf alone.
# Sums of cells: take their error from `hazemap ask`. Errors of neighbours are correlated, so stddev does not add up.

file <- @FILE@

if (grepl("[.]parquet$", file)) {
  rows <- arrow::read_parquet(file, as_data_frame = FALSE)
  label <- jsonlite::fromJSON(rows$metadata[["hazemap"]], simplifyVector = FALSE)
  rows <- as.data.frame(rows)
  outlines <- sf::st_as_sfc(structure(lapply(rows$geometry, as.raw), class = "WKB"), crs = "OGC:CRS84")
  cells <- sf::st_sf(rows[setdiff(names(rows), c("geometry", "bbox"))], geometry = outlines)
  statement <- label[["line"]]
} else {
  cells <- sf::st_read(file, layer = sf::st_layers(file)$name[1], quiet = TRUE)
  statement <- NULL
}

@SLOTS@
# A .parquet holds all slots together too, as a slot "all": they are apart in `total`.
total <- cells[cells$slot == "all", ]
cells <- cells[cells$slot != "all", ]

@SLOTS@

# Colour by density, never by best_guess: cells differ in size.
# plot(cells["per_km2"], logz = TRUE, border = NA)
