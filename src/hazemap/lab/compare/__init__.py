"""Compares methods: how far a released map is from the truth. Arrays in, numbers out.

Here the truth is known because the data is public or made up; nothing of this is for data that is to be protected.
"""
