"""The console's own figures, for Prometheus: by route template, never by path or person."""

from importlib.metadata import PackageNotFoundError, version

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

_BUCKETS_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """One set for each app, so that two apps in a process do not mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "incident_console_requests",
            "Answered requests.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "incident_console_request_seconds",
            "Time from request to the end of the answer.",
            ("method", "route"),
            buckets=_BUCKETS_SECONDS,
            registry=self.registry,
        )
        self.jobs = Gauge(
            "incident_console_jobs", "Jobs by state.", ("state",), registry=self.registry
        )
        self.bundles = Gauge(
            "incident_console_bundles", "Bundles in the database.", registry=self.registry
        )
        build = Info("incident_console_build", "What runs here.", registry=self.registry)
        build.info({"version": _version()})

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answer."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)


def _version() -> str:
    """Of the installed package; "unknown" where the source runs without being installed."""
    try:
        return version("incident-console")
    except PackageNotFoundError:
        return "unknown"
