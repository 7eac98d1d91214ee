/* SPDX-License-Identifier: Apache-2.0 */
/* From the client's graph to one graph a task: pure functions, errors that name the node. */
#ifndef MU_TASK_GRAPH_GRAPH_PASSES_H
#define MU_TASK_GRAPH_GRAPH_PASSES_H

#include "lib/graph/graph.h"

/* A device the master may place on. */
struct graph_device {
	const char *name; /* "/job:ps/replica:0/task:0/device:CPU:0" */
	uint64_t incarnation;
	const char *type; /* "CPU", "GPU" */
};
struct graph_devices {
	const struct graph_device *list;
	unsigned count;
	const char *client; /* the master's own CPU: where feeds and fetches end, and free ops go */
	bool soft_placement;
};

struct graph_signature {                                            /* a step's shape */
	const char *const *feeds, *const *fetches, *const *targets; /* "name:port", …; "name" */
	unsigned n_feeds, n_fetches, n_targets;
};

/* What the step needs: a new graph with client _Recv for feeds and client _Send for fetches, whose
 * rendezvous keys (for frame 0:0) come back in feed_keys and fetch_keys, in the arena of *out. */
int graph_prune(const struct mu_graph *g, const struct graph_signature *sig,
		const struct graph_devices *devs, struct mu_graph **out, const char ***feed_keys,
		const char ***fetch_keys, struct mu_err *err);
/* Where in a session that is kept which outlives a step: variables, queues, tables, what random
 * numbers were drawn.  Once found, a home stays: the session's later steps look for the state
 * there. */
struct graph_homes {
	struct mu_map by_name; /* of the node that makes it -> the device's name in graph_devices */
	unsigned seen;         /* so many of the graph's nodes have been looked at */
	bool calls;            /* one of them calls a function */
};
/* Finds homes for the nodes of the session's graph that have come since the last call.  What can
 * be nowhere gets none: the step that needs it says so. */
void graph_settle(struct mu_graph *g, const struct graph_devices *devs, struct graph_homes *homes);
/* Gives every node a full device name.  `homes` may be NULL. */
int graph_place(struct mu_graph *g, const struct graph_devices *devs,
		const struct graph_homes *homes, struct mu_err *err);
/* Between settle.c and place.c. */
bool graph_keeps(const struct mu_node *n); /* it keeps something from step to step */
void graph_place_homes(const struct mu_graph *g, const struct graph_devices *devs,
		       struct graph_homes *homes);
/* One graph a task, cut edges replaced by _Send/_Recv pairs.  `parts` has one entry for each task
 * that owns a node; devices are named by task prefix "/job:J/replica:0/task:T".  Loops that span
 * tasks get nodes added in g. */
struct graph_part {
	char *task;
	struct mu_graph *graph;
};
int graph_partition(struct mu_graph *g, const struct graph_devices *devs, struct graph_part **parts,
		    unsigned *n_parts, struct mu_err *err);
void graph_parts_free(struct graph_part *parts, unsigned n_parts);

#endif
