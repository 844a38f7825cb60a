"""The devices' side: protocols, servers, devices, recipes and studies, and the trust models that count through them."""
