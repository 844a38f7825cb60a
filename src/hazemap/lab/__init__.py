"""What measures hazemap and other methods; nothing that publishes a map imports it."""
