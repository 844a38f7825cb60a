"""What the values of people with many records each are compared by: tables, methods for them, and ways to score them.

Privacy model of all: VALUES ONLY (`hazemap.privacy.statement_facts`); the paper is Rameshwar, Tandon et al.
(2024).
"""
