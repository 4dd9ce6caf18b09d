# The console. Build: docker build -t incident-console .
FROM python:3.11-slim AS build
WORKDIR /src
COPY . .
RUN pip install --no-cache-dir build && python -m build --wheel --outdir /wheels

FROM python:3.11-slim
COPY constraints.txt /tmp/constraints.txt
COPY --from=build /wheels/*.whl /tmp/
RUN pip install --no-cache-dir -c /tmp/constraints.txt "$(ls /tmp/incident_console-*.whl)[console,postgres]" \
 && rm -rf /tmp/*.whl \
 && useradd --system --create-home --uid 10001 console \
 && install -d -o console -g console /data
USER console
WORKDIR /
VOLUME /data
EXPOSE 8000
ENV INCIDENT_CONSOLE_DATA_DIR=/data
HEALTHCHECK --interval=30s --timeout=5s CMD ["python", "-I", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
CMD ["incident-console", "serve", "--host", "0.0.0.0", "--port", "8000"]
