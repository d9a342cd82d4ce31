# One image for all parts; the first argument says which: train, scorer, extender, schedule, webhook, ...
#
#   make image
#
# For linux/amd64 and linux/arm64: nothing is compiled but Python, and every pinned dependency has wheels of both.
# Runs as user 65532 with a read-only root file system; /tmp is the one place that must be writable (deploy/ mounts
# memory there). docs/operate/deployment.md has more.

# Any image with Python 3.11 or newer as `python3`, pip and venv; name your own mirror or a hardened base here.
ARG PYTHON=python:3.11-slim-bookworm

FROM ${PYTHON} AS build
# Drivers of object stores: s3 (AWS and whatever speaks its API). Empty: models and history on volumes only.
ARG EXTRAS=s3
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_COMPILE=1
WORKDIR /source
RUN python3 -m venv /opt/forecast-scheduler
# What we depend on changes less often than we do: a layer of its own, from names and versions alone.
COPY pyproject.toml constraints.txt ./
RUN python3 -c "import tomllib; project = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
extras = [extra for extra in '${EXTRAS}'.split(',') if extra]; \
print('\n'.join(project['dependencies'] + sum((project['optional-dependencies'][extra] for extra in extras), [])))" \
        > requirements.txt \
    && /opt/forecast-scheduler/bin/pip install --constraint constraints.txt --requirement requirements.txt hatchling
COPY README.md LICENSE ./
COPY base base
COPY forecast forecast
COPY trainer trainer
COPY kube kube
COPY cluster cluster
COPY serving serving
COPY scorer scorer
COPY placement placement
COPY extender extender
COPY scheduler scheduler
COPY profiles profiles
COPY advisor advisor
COPY rebalancer rebalancer
COPY tenants tenants
COPY autoscaling autoscaling
COPY admission admission
COPY forecast_scheduler forecast_scheduler
# Compiled here: the root file system is read-only where it runs. The tools that built it stay behind.
RUN /opt/forecast-scheduler/bin/pip install --constraint constraints.txt --no-build-isolation --no-deps . \
    && /opt/forecast-scheduler/bin/pip uninstall --yes --quiet hatchling pip setuptools \
    && python3 -m compileall -q -j 0 /opt/forecast-scheduler/lib
# What was installed, as CycloneDX. The base image is not in it: its builder's SBOM is beside the image (CONTRIBUTING.md).
RUN python3 -m venv /opt/sbom && /opt/sbom/bin/pip install --constraint constraints.txt cyclonedx-bom \
    && /opt/sbom/bin/cyclonedx-py environment --output-reproducible --no-validate --pyproject pyproject.toml \
        --output-file /opt/forecast-scheduler/sbom.cdx.json /opt/forecast-scheduler

FROM ${PYTHON}
# Filled in by a release (CONTRIBUTING.md); of a build at one's desk they are unknown.
ARG VERSION=unknown
ARG REVISION=unknown
ARG CREATED=unknown
LABEL org.opencontainers.image.title="forecast-scheduler" \
      org.opencontainers.image.description="Places pods where tonight's predicted peak of the node stays lowest" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
COPY --from=build /opt/forecast-scheduler /opt/forecast-scheduler
ENV PATH=/opt/forecast-scheduler/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
# Nobody's number in no image's /etc/passwd: nothing in the image belongs to it.
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["forecast-scheduler"]
CMD ["--help"]
