/* SPDX-License-Identifier: Apache-2.0 */
/* Graph passes of the master: from the client's graph to one graph per task.  They are pure
 * functions; their errors name the node. */
#ifndef MU_TASK_GRAPH_GRAPH_PASSES_H
#define MU_TASK_GRAPH_GRAPH_PASSES_H

#include "lib/graph/graph.h"

/* A device that nodes may be placed on. */
struct graph_device {
	const char *name; /* "/job:ps/replica:0/task:0/device:CPU:0" */
	uint64_t incarnation;
	const char *type; /* "CPU", "GPU" */
};
struct graph_devices {
	const struct graph_device *list;
	unsigned count;
	const char *client; /* the master's CPU: device of feeds, fetches, unconstrained ops */
	bool soft_placement;
	bool bfloat16_edges; /* tasks send each other float tensors as bfloat16 */
};

struct graph_signature { /* feeds, fetches and targets of a step */
	const char *const *feeds, *const *fetches, *const *targets; /* "name:port", …; "name" */
	unsigned n_feeds, n_fetches, n_targets;
	const char *const *connected, *const *sources; /* tensors, and their replacements */
	unsigned n_connected;
};

/* Makes a new graph of the nodes that the step needs, with a client _Recv for each feed and a
 * client _Send for each fetch.  feed_keys and fetch_keys get their rendezvous keys (for frame 0:0),
 * in the arena of *out. */
int graph_prune(const struct mu_graph *g, const struct graph_signature *sig,
		const struct graph_devices *devs, struct mu_graph **out, const char ***feed_keys,
		const char ***fetch_keys, struct mu_err *err);
/* Devices of the stateful nodes of a session: variables, queues, tables, random generators.  An
 * assignment never changes, because later steps of the session look for the state there. */
struct stateful_placement {
	struct mu_map by_name; /* stateful node -> the device's name in graph_devices */
	unsigned n_scanned;    /* nodes of the graph that have been examined */
	bool has_calls;        /* one of these nodes calls a function */
};
/* Assigns devices to the stateful nodes added to the session's graph since the last call.  A node
 * without a suitable device gets none; a step that needs it fails in graph_place. */
void graph_place_stateful(struct mu_graph *g, const struct graph_devices *devs,
			  struct stateful_placement *stateful);
/* Sets the full device name of every node.  `stateful` may be NULL. */
int graph_place(struct mu_graph *g, const struct graph_devices *devs,
		const struct stateful_placement *stateful, struct mu_err *err);
/* Shared by place_stateful.c and place.c. */
bool graph_is_stateful(const struct mu_node *n); /* has state that outlives a step */
/* Records the devices of the stateful nodes in *stateful.  Skips nodes whose colocation group has
 * no common device. */
void graph_record_stateful(const struct mu_graph *g, const struct graph_devices *devs,
			   struct stateful_placement *stateful);
/* Marks ops that fail for singular matrices in the version of TensorFlow that made the graph. */
void graph_mark_singular_errors(struct mu_graph *g);
/* Makes one graph per task and replaces the edges between tasks by _Send/_Recv pairs.  `partitions`
 * has one entry for each task with nodes, named by its prefix "/job:J/replica:0/task:T".  Adds
 * nodes to g for loops that span tasks. */
struct partition {
	char *task;
	struct mu_graph *graph;
};
int graph_partition(struct mu_graph *g, const struct graph_devices *devs,
		    struct partition **partitions, unsigned *n_partitions, struct mu_err *err);
void graph_partitions_free(struct partition *partitions, unsigned n_partitions);

/* Checks the nodes that a client has added to its session: those with ids from first_new on.
 * Removes them on failure.  As in TensorFlow, an extension is checked more strictly than a new
 * graph. */
int graph_check_new(struct mu_graph *g, unsigned first_new, bool extends, struct mu_err *err);
/* Checks the attributes and the number of inputs of all nodes of a step. */
int graph_check_step(const struct mu_graph *g, struct mu_err *err);

#endif
