-- Loads a release of hazemap into DuckDB 1.5 or later: the view `cells`, with a row for each cell and its outline as
-- GEOMETRY, and the view `statement`, its promise. Run it with: duckdb -init loader.sql
-- For functions such as ST_Intersects: INSTALL spatial; LOAD spatial;
-- Sums of cells: take their error from `hazemap ask`. Errors of neighbours are correlated, so stddev does not add up.

CREATE OR REPLACE VIEW cells AS
SELECT * EXCLUDE (bbox) FROM read_parquet(@FILE@);

@SLOTS@
-- The file holds all slots together too, as a slot `all`: they are apart in the view `total`.
CREATE OR REPLACE VIEW cells AS
SELECT * EXCLUDE (bbox) FROM read_parquet(@FILE@) WHERE slot <> 'all';

CREATE OR REPLACE VIEW total AS
SELECT * EXCLUDE (bbox, slot) FROM read_parquet(@FILE@) WHERE slot = 'all';

@SLOTS@

CREATE OR REPLACE VIEW statement AS
SELECT decode(value)::JSON ->> 'line' AS line, decode(value)::JSON -> 'statement' AS whole
FROM parquet_kv_metadata(@FILE@)
WHERE key = 'hazemap';
