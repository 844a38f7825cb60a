"""Space: boxes, trees and partitions of places; one file each, imported by name."""
