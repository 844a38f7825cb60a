"""Array types, hash indexes, and work in several threads; compiled loops are in `hazemap.vdaf.compiled_loops`."""
