"""The commands for devices and servers."""
