# SPDX-License-Identifier: Apache-2.0
# Muster's images.  `make images` builds operator and task; any target by hand:
#
#   docker build --target task -t localhost/muster-task:dev .
#
# Every base is an argument, so that a mirror, a digest or a base of one's own can stand in:
#   --build-arg BASE=registry.local/debian@sha256:...
ARG BASE=debian:12-slim
ARG CUDA_BASE=nvidia/cuda:12.4.1-devel-ubuntu22.04
ARG PYTHON_BASE=python:3.11-slim-bookworm

# ---- build: the three programs, and each image's files laid out under /out ----------------------
FROM ${BASE} AS build
RUN apt-get update && apt-get install -y --no-install-recommends make git binutils ca-certificates
WORKDIR /src
COPY tools/deps tools/deps
RUN tools/deps
COPY . .
ARG REVISION=unknown
RUN make all && for n in operator task cli; do IMAGE_REVISION=$REVISION tools/images rootfs $n /out/$n; done

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

# ---- task: task server, ready-made trainer, CPU kernels of every variant ------------------------
FROM scratch AS task
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Muster task: task server and ready-made trainer, CPU" \
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

# ---- task-cuda: task, and the GPU plug-in built by the CUDA compiler with the libraries it loads --
FROM ${CUDA_BASE} AS cuda
FROM build AS build-cuda
COPY --from=cuda /usr/local/cuda/ /usr/local/cuda/
RUN rm -f build/release/libmuster-cuda.so && make NVCC=/usr/local/cuda/bin/nvcc build/release/libmuster-cuda.so && \
    mkdir -p /out/cuda && cp -a /usr/local/cuda/lib64/libcudart.so.* /usr/local/cuda/lib64/libcublas.so.* \
    /usr/local/cuda/lib64/libcublasLt.so.* /out/cuda/ && strip -o /out/libmuster-cuda.so build/release/libmuster-cuda.so
FROM task AS task-cuda
COPY --from=build-cuda /out/libmuster-cuda.so /usr/local/lib/
COPY --from=build-cuda /out/cuda/ /usr/local/cuda/lib64/
ENV LD_LIBRARY_PATH=/usr/local/cuda/lib64 NVIDIA_DRIVER_CAPABILITIES=compute,utility

# ---- task-tf: task, and Python TensorFlow for programs that bring their own graph ----------------
FROM ${PYTHON_BASE} AS task-tf
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Muster task with Python TensorFlow" \
      org.opencontainers.image.version=$VERSION org.opencontainers.image.revision=$REVISION \
      org.opencontainers.image.licenses=Apache-2.0
RUN apt-get update && apt-get install -y --no-install-recommends libgrpc29 libprotobuf-c1 libyaml-0-2 libcjson1 \
    libopenblas0-pthread && rm -rf /var/lib/apt/lists/* && pip install --no-cache-dir tensorflow-cpu==2.15.1
COPY --from=build /out/task/usr/local/ /usr/local/
COPY --from=build /out/task/usr/share/muster/ /usr/share/muster/
RUN useradd --uid 65532 --home-dir /tmp --no-create-home --shell /usr/sbin/nologin muster
USER 65532:65532
WORKDIR /usr/share/muster
ENTRYPOINT ["/usr/local/bin/muster-task"]
