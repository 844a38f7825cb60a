"""What somebody orders, in words: budgets, bounding rules, cells and methods understood before anything is paid."""
