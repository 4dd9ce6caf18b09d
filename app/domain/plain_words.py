"""What of a sentence may leave the house at T0: plain words, figures and the engine's own terms.

An allow-list, word by word. Whatever has the shape of a host, path, URL, key, token, request
id or quoted text is not recognised as harmless and is left out; so is every word that was
named as one to hide. Text is never searched for secrets here, because a search misses some.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

LEFT_OUT = "[left out]"
_OUT = "\x00"  # stands for what is left out until neighbours are joined

# Parts of a triage vocabulary that are neither plain words nor figures. No value of a
# deployment is among them: flags and endpoints are the engine's, the same everywhere.
TERMS = frozenset(
    """
    /ready /ping /health /health_generate /model_info /server_info /get_server_info /metrics
    /v1/loads /v1/loads?include=all /get_load /get_model_info
    /hicache/storage-backend /flush_cache down/unhealthy latency/throughput hang/timeout
    SGLang sglang AllReduce HiCache RadixCache GiB MiB kB MB GB TB NaN E2E FP8 FP4 INT8 BF16
    token/s tokens/s req/s requests/s prefill/decode in-flight inter-token round-trip py-spy
    time-to-first-token end-to-end long-running roll-back read-only cut-off load-balancer
    blocked-after-loads counter-reset counters-frozen rank-without-progress generate-fails-health-ok
    hicache-needs-admin-key idle-capture kv-pressure metrics-off no-access not-one-server
    partial-ranks proxy-answered queue-build-up rank-skew restart-between-bundles
    rust-ingress-no-api-key scheduler-silent secrets-exposed-by-server sessions-held-open
    snapshot-stale ttft-high-queue-short wedged-between-bundles went-away-while-collecting
    gen_throughput token_usage num_running_reqs num_queue_reqs dp_rank
    --enable-metrics --api-key --admin-api-key --watchdog-timeout --mem-fraction-static
    --max-running-requests --chunked-prefill-size --disable-radix-cache --schedule-policy
    --disable-overlap-schedule --crash-dump-folder --log-level --enable-cache-report
    """.split()  # noqa: SIM905  (a word list reads better as words)
)

_SHAPES = re.compile(
    r"""
      [A-Za-z]?[a-z]{0,17}(?:n['’]t|['’](?:s|re|ve|ll|d|t))?  # a plain word
    | [A-Z]{2,5}s?                                      # an abbreviation
    | [+\-−±<>≤≥≈~=]?\d{1,9}(?:[.,]\d{1,6})?            # a figure
      (?:[%×x°]|(?:k|M|G|T)?(?:i?B)?(?:/s)?|[mµn]?s|min|h|d|W|C)?
    | \d{1,2}:\d{2}(?::\d{2})?Z?                        # a time of day
    | \d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?Z)?
    | v?\d{1,3}\.\d{1,3}\.\d{1,3}                        # a version; an address has four parts
      (?:\.?(?:post|rc|dev)\d{1,3})?
    | sglang:[a-z_]{1,60}                               # an engine's series
    | (?:TP|DP|PP|EP|SEV|sev|L|T)\d{1,4}                # a rank, a severity, a rung, a tier
    | p\d{1,2}(?:\.\d)?                                 # a quantile
    | [—–\-−/·=×≤≥<>+&%→]                                # a sign on its own
    """,
    re.VERBOSE,
)
_REQUEST_ID = re.compile(
    r"(?:[A-Za-z]{2,12}-)?(?:[0-9a-f]{16,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)
# A colon ends a word and nothing else: stripped from both sides, ``::1`` would be a figure.
_IN_BRACKETS = re.compile(r"([(\[{<…]*)(.*?)((?:[)\]}>.,;!?…]|:(?=[)\]}>]|$))*)", re.DOTALL)
_QUOTED = re.compile(
    r"\"[^\"]*\"?|“[^”]*”?|«[^»]*»?|`[^`]*`?|‘[^’]*’?|(?<![A-Za-z])'[^']*'?", re.DOTALL
)
_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class PlainWords:
    """Reads sentences for a stranger. ``fingerprint`` gives a request id its keyed mark."""

    fingerprint: Callable[[str], str]
    renamed: Mapping[str, str] = field(default_factory=dict)  # "decode-a" -> "target A"
    hidden: frozenset[str] = frozenset()  # lower-case words never shown: parts of host names

    def told(self, text: str) -> str:
        """*text* without what is not known to be harmless, on one line."""
        safe = "".join(
            self.renamed[part] if part in self.renamed else self._harmless(part)
            for part in self._split_names(text.replace(_OUT, " "))
        )
        joined = re.sub(rf"{_OUT}(?:[\s,;]*{_OUT})*", LEFT_OUT, safe)
        return " ".join(joined.split())

    def _split_names(self, text: str) -> Iterable[str]:
        if not self.renamed:
            return [text]
        longest_first = sorted(self.renamed, key=len, reverse=True)
        names = "|".join(map(re.escape, longest_first))
        return re.split(rf"(?<![\w./:@-])({names})(?![\w/:@-]|\.\w)", text)

    def _harmless(self, text: str) -> str:
        return _WORD.sub(lambda match: self._word(match[0]), _QUOTED.sub(self._quoted, text))

    def _quoted(self, match: re.Match[str]) -> str:
        inner = match[0].strip("`'\"")
        return inner if inner in TERMS else _OUT

    def _word(self, word: str) -> str:
        match = _IN_BRACKETS.fullmatch(word)
        assert match is not None  # the middle takes whatever the edges do not
        before, core, after = match.groups()
        return f"{before}{self._core(core) if core else ''}{after}"

    def _core(self, core: str) -> str:
        if core == _OUT:
            return core
        if re.sub(r"['’]\w+$", "", core.lower()) in self.hidden:
            return _OUT
        if {core, core[0].lower() + core[1:]} & TERMS or _SHAPES.fullmatch(core):
            return core
        return f"rid:{self.fingerprint(core)}" if _REQUEST_ID.fullmatch(core) else _OUT
