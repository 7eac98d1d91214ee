# Muster.  One Makefile, no recursion, out of tree: build/<mode>/…, programs in build/bin.
# `make help` lists what there is.

.DEFAULT_GOAL := all
MODE     ?= release
B        := build/$(MODE)
BIN      := $(if $(filter release,$(MODE)),build/bin,$(B)/bin)
CC       ?= gcc
ifeq ($(origin CC),default)
CC       := gcc
endif
VERSION  := 0.1.0

include tools/config.mk

WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
            -Wvla -Wundef -Wno-unused-parameter -Werror
# clang warns of each loop that it keeps scalar and of table rows that leave out members; both are intended
WARN     += $(if $(findstring clang,$(CC)),-Wno-pass-failed -Wno-missing-field-initializers)
CPPFLAGS += -I. -I$(B)/gen -Iinclude -D_GNU_SOURCE -DMUSTER_VERSION='"$(VERSION)"'
CFLAGS   += -std=gnu17 -g $(WARN) -fno-strict-aliasing -fvisibility=hidden -pthread -MMD -MP
LDFLAGS  += -pthread -Wl,--as-needed
FLAGS_release := -O2 -D_FORTIFY_SOURCE=2 -fstack-protector-strong
FLAGS_asan    := -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FLAGS_tsan    := -O1 -fsanitize=thread
FLAGS_fuzz    := -O1 -fsanitize=fuzzer-no-link,address,undefined
FLAGS_clang   := -O0
CFLAGS   += $(FLAGS_$(MODE))
LDFLAGS  += $(filter -fsanitize%,$(FLAGS_$(MODE)))

# ---- parts: a folder of sources is a static library; a program is a main file and its libraries ----
find_c = $(sort $(foreach d,$(1),$(wildcard $(d)/*.c)))

SRC_base   := $(call find_c,lib/base lib/tensor lib/graph lib/ops lib/builder lib/grad lib/inline lib/io lib/checkpoint lib/cluster)
# the HTTP client, which brings libcurl; tasks make no HTTP calls
SRC_http   := lib/net/http_client.c lib/net/http_url.c
SRC_net    := $(filter-out $(SRC_http),$(call find_c,lib/net))
SRC_rpc    := $(call find_c,task/rpc)
# JPEG pictures, where libjpeg is
JPEG        := $(shell pkg-config --exists libjpeg 2>/dev/null && echo yes)
NO_JPEG     := task/kernels/image/jpeg_none.c
SRC_kernel := $(call find_c,task/kernels/* task/kernels/engine/loops task/runtime task/device)
SRC_kernel := $(filter-out $(if $(JPEG),$(NO_JPEG),task/kernels/image/jpeg.c),$(SRC_kernel))
SRC_task   := $(filter-out task/main.c,$(call find_c,task task/master task/worker task/graph task/peer task/messages))
SRC_client := $(call find_c,client client/model client/data client/session client/optim client/server)
SRC_plan   := $(call find_c,operator/api operator/plan)
SRC_kube   := $(call find_c,lib/kube)
SRC_tls    := $(call find_c,lib/tls)
SRC_controller := $(call find_c,operator/controller)
SRC_cli    := $(filter-out cli/main.c,$(call find_c,cli))
SRC_cluster := $(filter-out cli/cluster/main.c,$(call find_c,cli/cluster))
PROTOS     := $(wildcard proto/*.proto)
GEN        := $(patsubst proto/%.proto,$(B)/gen/proto/%.pb-c.c,$(PROTOS))

PARTS := base net http tls kube rpc kernel task client plan controller cli cluster
objs   = $(patsubst %.c,$(B)/o/%.o,$(1))
lib    = $(foreach p,$(1),$(B)/libmuster-$(p).a)

LIBS_base   := -lyaml -lcjson -lpng -lz -lm
LIBS_net    := -lmicrohttpd
LIBS_rpc    := -lprotobuf-c -lgrpc -lgpr
LIBS_tls    := -lssl -lcrypto
LIBS_kernel := -lopenblas -lpcre2-8 -lgif $(if $(JPEG),-ljpeg) -ldl -lm
LIBS_http   := -lcurl
LIBS_kube   := -lcrypto

TASK_PARTS     := task kernel rpc tls net base
CLIENT_PARTS   := client $(TASK_PARTS)
CLI_PARTS      := cli plan $(CLIENT_PARTS)
OPERATOR_PARTS := controller kube http plan tls net base
CLUSTER_PARTS  := cluster cli kube http tls plan net base
PROGRAMS       := $(BIN)/muster-task $(BIN)/muster-operator $(BIN)/muster $(BIN)/muster-cluster

.DEFAULT_GOAL := all
.PHONY: all
all: report $(PROGRAMS) $(B)/libmuster-cuda.so ## build the programs into build/bin
	@echo "  built    $(PROGRAMS)"

# Each is named after the things that it makes.
include $(addprefix tools/,libraries.mk programs.mk kernels.mk gpu-plugin.mk docs.mk examples.mk \
                           unit-tests.mk gpu-tests.mk benchmarks.mk fuzzers.mk install.mk images.mk targets.mk)
