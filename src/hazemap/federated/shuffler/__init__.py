"""A shuffler: it holds sealed messages of a batch, hands them on in an order that says nothing, and forgets them."""
