# SPDX-License-Identifier: Apache-2.0
"""Reads the arguments of tf.train.Server: cluster, job and index.

A cluster may be a dictionary (with lists, or with dictionaries of index to address), a tf.train.ClusterSpec, a
ClusterDef or a ServerDef.  TensorFlow itself is not needed to read them.
"""


def tasks_of(value):
    """{index: address} of one job."""
    if isinstance(value, dict):
        return {int(index): str(address) for index, address in value.items()}
    return dict(enumerate(str(address) for address in value))


def cluster_of(given):
    """{job: {index: address}}."""
    if hasattr(given, "as_cluster_def"):
        given = given.as_cluster_def()
    if hasattr(given, "job"):
        given = {job.name: dict(job.tasks) for job in given.job}
    if not isinstance(given, dict):
        raise TypeError("Could not convert `server_or_cluster_def` to a `tf.train.ServerDef` or `tf.train.ClusterSpec`: "
                        f"it is a {type(given).__name__}")
    return {str(job): tasks_of(tasks) for job, tasks in given.items()}


def only(name, values):
    if len(values) != 1:
        raise ValueError(f"Must specify an explicit `{name}`.")
    return next(iter(values))


def describe(given, job=None, index=None):
    """(cluster, job, index) from the caller's arguments. job and index may be omitted if there is only one choice."""
    if hasattr(given, "job_name") and hasattr(given, "cluster"):
        job = given.job_name if job is None else job
        index = given.task_index if index is None else index
        given = given.cluster
    cluster = cluster_of(given)
    job = only("job_name", cluster) if job is None else job
    if job not in cluster:
        raise ValueError(f"the cluster has no job '{job}', only {', '.join(map(repr, cluster)) or 'none at all'}")
    index = only("task_index", cluster[job]) if index is None else int(index)
    if index not in cluster[job]:
        raise ValueError(f"job '{job}' has no task {index}, only {sorted(cluster[job])}")
    return cluster, job, index
