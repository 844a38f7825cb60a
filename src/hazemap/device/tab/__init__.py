"""The device that runs in a browser's tab: one page, that `make studio` builds from `studio/tab`, and who serves it."""
