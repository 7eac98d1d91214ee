# The four programs.
$(BIN)/muster-task: $(B)/o/task/main.o $(call lib,$(TASK_PARTS))
	$(call program,$(call libs_of,$(TASK_PARTS)) -rdynamic)
$(BIN)/muster-operator: $(B)/o/operator/main.o $(call lib,$(OPERATOR_PARTS))
	$(call program,$(call libs_of,$(OPERATOR_PARTS)))
$(BIN)/muster-cluster: $(B)/o/cli/cluster/main.o $(call lib,$(CLUSTER_PARTS))
	$(call program,$(call libs_of,$(CLUSTER_PARTS)))
$(BIN)/muster: $(B)/o/cli/main.o $(call lib,$(CLI_PARTS))
	$(call program,$(call libs_of,$(CLI_PARTS)))
