# SPDX-License-Identifier: Apache-2.0
# Muster's images.  `make images` builds operator and task; any target by hand:
#
#   docker build --target task -t localhost/muster-task:dev .
#
# Every base is an argument, so that a mirror, a digest or a base of one's own can stand in:
#   --build-arg BASE=registry.local/debian@sha256:...
# A Debian 12 of one's own needs no registry: debootstrap --variant=minbase bookworm DIR, and DIR as an image.
ARG BASE=debian:bookworm-20250520-slim
# of CUDA_BASE only /usr/local/cuda is taken
ARG CUDA_BASE=nvidia/cuda:13.0.2-devel-ubuntu24.04

# ---- build: the three programs, and each image's files laid out under /out ----------------------
FROM ${BASE} AS build
RUN apt-get update && apt-get install -y --no-install-recommends make binutils ca-certificates
WORKDIR /src
COPY tools/deps tools/deps
RUN tools/deps
COPY . .
RUN make -j"$(nproc)" all
# after the long part, which another revision of the same files need not repeat
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
RUN for n in operator task cli; do \
      IMAGE_REVISION=$REVISION IMAGE_CREATED=$CREATED tools/images rootfs $n /out/$n; done

# ---- operator: the program and its libraries; no shell, no package manager ----------------------
FROM scratch AS operator
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Muster operator: runs distributed training jobs on Kubernetes" \
      org.opencontainers.image.version=$VERSION org.opencontainers.image.revision=$REVISION \
      org.opencontainers.image.licenses=Apache-2.0
COPY --from=build /out/operator/ /
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["/usr/local/bin/muster-operator"]

# ---- task: task server, built-in trainer, CPU kernels of every variant ------------------------
FROM scratch AS task
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Muster task: task server and built-in trainer, CPU" \
      org.opencontainers.image.version=$VERSION org.opencontainers.image.revision=$REVISION \
      org.opencontainers.image.licenses=Apache-2.0
COPY --from=build /out/task/ /
USER 65532:65532
WORKDIR /usr/share/muster
ENTRYPOINT ["/usr/local/bin/muster-task"]

# ---- cli: the muster program alone --------------------------------------------------------------
FROM scratch AS cli
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Muster command line" \
      org.opencontainers.image.version=$VERSION org.opencontainers.image.revision=$REVISION \
      org.opencontainers.image.licenses=Apache-2.0
COPY --from=build /out/cli/ /
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["/usr/local/bin/muster"]

# ---- task-cuda: task with the GPU plug-in that CUDA's compiler built, and the library that it loads --
FROM ${CUDA_BASE} AS cuda
FROM build AS build-cuda
# CUDA's compiler gives its host part to g++, which nothing else here has a use for
RUN apt-get update && apt-get install -y --no-install-recommends g++
COPY --from=cuda /usr/local/cuda/ /usr/local/cuda/
RUN rm -f build/release/libmuster-cuda.so && make NVCC=/usr/local/cuda/bin/nvcc build/release/libmuster-cuda.so
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
RUN IMAGE_REVISION=$REVISION IMAGE_CREATED=$CREATED tools/images rootfs task-cuda /out/task-cuda
FROM scratch AS task-cuda
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Muster task: task server and built-in trainer, CPU and GPU" \
      org.opencontainers.image.version=$VERSION org.opencontainers.image.revision=$REVISION \
      org.opencontainers.image.licenses=Apache-2.0
COPY --from=build-cuda /out/task-cuda/ /
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 65532:65532
WORKDIR /usr/share/muster
ENTRYPOINT ["/usr/local/bin/muster-task"]

# ---- task-tf: task, and Python TensorFlow for programs that bring their own graph; with a shell and pip,
# ---- so that FROM muster-task-tf can add to it ------------------------------------------------------
FROM ${BASE} AS python
# where pip looks, if not where it looks by itself
ARG PIP_INDEX_URL=
RUN apt-get update && apt-get install -y --no-install-recommends python3 python3-venv ca-certificates && \
    python3 -m venv /usr/local && env ${PIP_INDEX_URL:+PIP_INDEX_URL=$PIP_INDEX_URL} \
      /usr/local/bin/pip install --no-cache-dir --no-compile tensorflow-cpu==2.15.1 tensorboard && \
    python3 -m compileall -q --invalidation-mode unchecked-hash /usr/local/lib && \
    rm -rf /var/lib/apt/lists /var/cache/* /var/log/* ~/.cache /tmp/* && \
    useradd --uid 65532 --home-dir /tmp --no-create-home --shell /usr/sbin/nologin muster
FROM python AS python-sbom
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
COPY Makefile /src/
COPY tools/images /src/tools/
RUN IMAGE_REVISION=$REVISION IMAGE_CREATED=$CREATED /src/tools/images sbom task-tf \
      $(dpkg-query -W -f '${Package} ') $(/usr/local/bin/pip list --format=freeze) >/sbom.spdx
FROM python AS task-tf
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Muster task with Python TensorFlow" \
      org.opencontainers.image.version=$VERSION org.opencontainers.image.revision=$REVISION \
      org.opencontainers.image.licenses=Apache-2.0
COPY --from=build /out/task/usr/ /usr/
COPY --from=python-sbom /sbom.spdx /usr/share/doc/muster/
COPY client/python/muster/ /usr/local/lib/python3.11/site-packages/muster/
USER 65532:65532
WORKDIR /usr/share/muster
ENTRYPOINT ["/usr/local/bin/muster-task"]
