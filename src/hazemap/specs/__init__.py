"""Typed specifications: budgets, bounding rules, cells and methods, understood before anything is paid."""
