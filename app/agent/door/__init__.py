"""Who may ask: keys, certificate, nonces, and the guard before every request."""
