"""What makes a release at home in other people's tools: styles of layers, catalogues, databases."""
