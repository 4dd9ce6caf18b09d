"""Request and crash dumps of an SGLang server, and other files of requests: what is in them.

Works on inert values (``app.domain.pickled``) and on plain JSON; nothing in a file is ever run.
"""
