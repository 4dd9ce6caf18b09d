"""What the agent tells Prometheus of itself: counts and sizes, nothing of what it took.

They are given to whoever signs, and without a signature to this host's own loopback.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector, generate_latest

from app.agent.kept.files import AgentFiles

_NAMESPACE = "incident_agent"


class Metrics:
    """A registry of its own: the console that embeds an agent has another."""

    def __init__(self, files: AgentFiles, version: str) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(namespace=_NAMESPACE, registry=self.registry)
        self._answered = self._counter("answers", "Signed requests answered.", "status")
        self._refused = self._counter("refused", "Requests refused at the door.", "reason")
        self._actions = self._counter("actions", "What was done here.", "what", "result")
        held = self._gauge("held_files", "Files that the agent tells of.")
        held.set_function(lambda: len(files.listing()))
        size = self._gauge("held_bytes", "Bytes that the agent itself keeps.")
        size.set_function(files.used_bytes)
        self._gauge("quota_bytes", "Bytes that it may keep.").set(files.quota_bytes)
        self._gauge("build_info", "Which version runs.", "version").labels(version).set(1)

    def answered(self, status: int) -> None:
        """Count an answer."""
        self._answered.labels(str(status)).inc()

    def refused(self, reason: str) -> None:
        """Count a request that was not let in."""
        self._refused.labels(reason).inc()

    def acted(self, what: str, result: str) -> None:
        """Count an action: *result* is "done" or "failed"."""
        self._actions.labels(what, result).inc()

    def text(self) -> bytes:
        """In Prometheus' text format."""
        return generate_latest(self.registry)

    def _counter(self, name: str, says: str, *labels: str) -> Counter:
        return Counter(name, says, labels, namespace=_NAMESPACE, registry=self.registry)

    def _gauge(self, name: str, says: str, *labels: str) -> Gauge:
        return Gauge(name, says, labels, namespace=_NAMESPACE, registry=self.registry)
