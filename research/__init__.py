"""What measures papers and peers: comparisons on evaluation data, and benchmarks. Uses hazemap as anybody may."""
