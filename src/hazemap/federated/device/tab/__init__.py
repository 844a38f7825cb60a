"""The device that runs in a browser's tab: one page, that `make studio` builds from `web/tab`, and who serves it."""
