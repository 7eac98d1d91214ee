# Benchmarks, with stock TensorFlow or Kubeflow's training-operator as the peer.
.PHONY: bench
bench: all $(B)/bench/raw_client $(B)/bench/client_steps ## benchmarks beside their peers; writes docs/performance.md
	@bench/run.sh --page docs/performance.md

.PHONY: bench-programs
bench-programs: $(patsubst bench/%.c,$(B)/bench/%,$(filter-out bench/gpu.c,$(wildcard bench/*.c))) $(B)/bench/operator/load

.PHONY: bench-kernels
bench-kernels: $(B)/tests/kernels/op_driver ## each CPU kernel beside TensorFlow's, on 1 and on 2 threads
	@bench/run.sh kernels.py $< --threads 1
	@bench/run.sh kernels.py $< --threads 2

# Speed of one GPU, with its limits, and with PyTorch if installed.  BENCH_GPU: seconds per figure, side of
# the products, MiB of the buffers.
.PHONY: bench-gpu
bench-gpu: ## products, memory and the link of this machine's GPU beside their limits, and PyTorch's figures
	@$(kernel_gpu); $(again) $(GPU_PLUGIN) $(B)/bench/gpu && $(B)/bench/gpu $(abspath $(GPU_PLUGIN)) $(BENCH_GPU) && \
	python3 bench/gpu_peer.py $(word 2,$(BENCH_GPU))

.PHONY: bench-read
bench-read: $(B)/bench/read_files ## reading data files, beside tf.data
	@bench/run.sh read.py $<

.PHONY: bench-executor
bench-executor: $(B)/bench/executor_bench ## what the executor costs an op
	@$(B)/bench/executor_bench
$(B)/bench/%: $(B)/o/bench/%.o $(call lib,$(TASK_PARTS))
	$(call program,$(call libs_of,$(TASK_PARTS)) -rdynamic)

$(B)/bench/client_steps: $(B)/o/bench/client_steps.o $(call lib,$(CLIENT_PARTS))
	$(call program,$(call libs_of,$(CLIENT_PARTS)) -rdynamic)

.PHONY: bench-operator
bench-operator: all $(B)/bench/operator/load ## the operator beside Kubeflow's and a bare loop, on one API server
	@LOAD=$(B)/bench/operator/load bench/operator/run.sh
$(B)/bench/operator/load: $(call objs,$(wildcard bench/operator/*.c)) $(call lib,$(OPERATOR_PARTS))
	$(call program,$(call libs_of,$(OPERATOR_PARTS)))
