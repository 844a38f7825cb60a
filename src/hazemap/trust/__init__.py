"""Who answers: the only side that sees rows, and the only one that adds noise. Importing one loads no other."""
