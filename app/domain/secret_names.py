"""Which names stand before a secret: ``hf_token`` does, ``max_total_tokens`` does not."""

import re
from functools import lru_cache

# One such word anywhere in the name is enough.
_SECRET_WORDS = frozenset(
    """
    secret secrets password passwords passwd passphrase pwd credential credentials
    authorization cookie cookies bearer jwt apikey apikeys
    """.split()  # noqa: SIM905  (a word list reads best as words)
)
# A key is a secret only in such company: ``cache_key`` and ``label_key`` are not.
_SECRET_KEYS = re.compile(
    r"(?:^|_)(?:api|access|private|secret|signing|encryption|auth|admin|account|master|shared"
    r"|fernet|aes|hmac|subscription)_keys?(?:_|$)|^watermark_(?:config|key)"
)
# A token is a secret only as the last word, and not after a word that makes it a piece of text.
_TEXT_TOKENS = frozenset(
    """
    first last next per eos bos pad unk sep cls mask stop image video audio special start end
    begin input output prompt think reasoning draft inter word sub text dummy blank cached new
    each fim boi eoi im accepted max min num total time page
    """.split()  # noqa: SIM905  (a word list reads best as words)
)
_SECRET_TOKENS = re.compile(r"(?:^|_)(?:auth|access|api|bearer|refresh|session|hf)_tokens?(?:_|$)")
_QUERY_SECRETS = frozenset(("key", "sig", "signature", "x_amz_signature", "x_amz_credential"))
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether a value called *name* is a secret: in JSON, flags, environment, queries."""
    plain = _plain(name)
    words = plain.split("_")
    if not _SECRET_WORDS.isdisjoint(words):
        return not plain.endswith(("_file", "_path", "_env", "_name", "_header"))
    if _SECRET_KEYS.search(plain) or _SECRET_TOKENS.search(plain):
        return not plain.endswith(("_file", "_path", "_env", "_name", "_header"))
    return words[-1] == "token" and (len(words) == 1 or words[-2] not in _TEXT_TOKENS)


@lru_cache(maxsize=1024)
def is_secret_parameter(name: str) -> bool:
    """As ``is_secret_name``, and the names that only in a URL's query mean a secret."""
    return is_secret_name(name) or _plain(name) in _QUERY_SECRETS


def _plain(name: str) -> str:
    return _CAMEL.sub("_", name).lower().strip("-_.").replace("-", "_").replace(".", "_")
