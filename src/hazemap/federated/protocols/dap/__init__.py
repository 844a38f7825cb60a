"""The Distributed Aggregation Protocol (draft-ietf-ppm-dap-18; uploads of draft 09 too): bytes in, bytes out."""
