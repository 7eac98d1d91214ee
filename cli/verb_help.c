/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verb_help.h"

#include <stddef.h>

const struct verb_option verb_options[] = {
    {"run", "--fresh",
     "move the checkpoints and logs of an earlier run aside and start from the beginning"},
    {"run", "--logs DIR", "folder of the task logs; default: logs/ in the checkpoint folder"},
    {"run", "--log-size MIB",
     "maximum disk space of a task's log; at half of it the log is renamed to .log.1 and a new one "
     "starts; default 64, 0: no limit"},
    {"run", "--scale TASK=N", "set the number of tasks; changes the job if it is running already"},
    {"validate", "--plan", "show what the operator would create first"},
    {"submit", "--force-conflicts",
     "take over fields that another manager has set, such as replicas after kubectl scale"},
    {"submit", "-n NAMESPACE", "namespace of a manifest without a namespace"},
    {"submit", "--context NAME", "context of the kubeconfig"},
    {"submit", "--kubeconfig FILE", "default: KUBECONFIG, then ~/.kube/config"},
    {"logs", "-f",
     "or --follow: follow the logs, wait for tasks that have not started, and follow restarted "
     "tasks; ends when "
     "the job has ended"},
    {"logs", "--tail N", "print only the last N lines of each log"},
    {"logs", "--previous", "print the log of the container before its last restart"},
    {"logs", "-n NAMESPACE", "namespace of the job; default: that of the context"},
    {"logs", "--context NAME", "context of the kubeconfig"},
    {"logs", "--kubeconfig FILE", "default: KUBECONFIG, then ~/.kube/config"},
    {"wait", "--timeout TIME", "maximum time to wait: seconds, or a time such as 90s, 10m, 2h"},
    {"wait", "-n NAMESPACE", "namespace of the job; default: that of the context"},
    {"wait", "--context NAME", "context of the kubeconfig"},
    {"wait", "--kubeconfig FILE", "default: KUBECONFIG, then ~/.kube/config"},
    {"top", "-n NAMESPACE", "namespace of the jobs; default: that of the context"},
    {"top", "-A", "list the jobs of all namespaces"},
    {"top", "--once", "print the table once instead of every two seconds"},
    {"top", "--context NAME", "context of the kubeconfig"},
    {"top", "--kubeconfig FILE", "default: KUBECONFIG, then ~/.kube/config"},
    {"explain", "-n NAMESPACE", "namespace of the job; default: that of the context"},
    {"explain", "--context NAME", "context of the kubeconfig"},
    {"explain", "--kubeconfig FILE", "default: KUBECONFIG, then ~/.kube/config"},
    {"train", "--manifest JOB.yaml", "read the training from a manifest instead of MUSTER_TRAIN"},
    {"train", "--target HOST:PORT", "use a server that runs already instead of starting one"},
    {NULL, NULL, NULL},
};

const struct verb_text verb_texts[] = {
    {"run",
     "Reads a manifest and starts a process for each task on this machine, as the operator starts "
     "pods in a cluster. Shows the progress, restarts failed tasks according to the manifest, and "
     "resumes from the latest checkpoint. Ctrl-C saves a checkpoint and stops; a second Ctrl-C "
     "stops at once.",
     "0 when the job has succeeded, 1 when it has failed, 130 when interrupted.",
     "muster run examples/digits.yaml"},
    {"scale",
     "Changes the number of workers of a job that muster run runs in another terminal. The job is "
     "given by its name or its manifest. The ps tasks and their variables stay.",
     NULL, "muster scale digits worker=4"},
    {"validate",
     "Checks manifests with the rules of the API server's schema and of the operator. Each error "
     "is one line with file, line, field and the expected value.",
     "0 when all manifests are valid, 1 otherwise.", "muster validate --plan examples/*.yaml"},
    {"convert",
     "Writes DistributedTrainingJobs for Kubeflow TFJobs to standard output. A field without a "
     "counterpart becomes a comment.",
     NULL, "muster convert tfjob.yaml > job.yaml"},
    {"checkpoint",
     "ls: lists the checkpoints of a folder and marks the latest one. show: lists the tensors of a "
     "checkpoint with types and shapes, or prints the values of one tensor. diff: lists the "
     "tensors that differ between two checkpoints, and by how much. Checkpoints of TensorFlow can "
     "be read too.",
     "diff: 0 when they are equal, 1 when not, 2 when one cannot be read.",
     "muster checkpoint show out/model.ckpt-2000"},
    {"events",
     "Draws the scalars of event files, also those of TensorFlow, as curves in the terminal.", NULL,
     "muster events out/digits"},
    {"status",
     "Requests the state of a task server over HTTP: sessions, waiting steps with the reason, and "
     "resources.",
     NULL, "muster status localhost:8080"},
    {"submit",
     "Checks a manifest as muster validate does and applies it to a cluster (server-side apply), "
     "then prints whether the job was created, changed or unchanged.",
     "0 when the API server has accepted the job; 1 when the manifest is invalid, or the API "
     "server rejects it or is unreachable.",
     "muster submit examples/digits.yaml"},
    {"logs",
     "Prints the logs of all tasks of a job, of one kind of task (worker) or of one task "
     "(worker/0). JOB is a name, job/NAME or the manifest. With several tasks each line begins "
     "with its task.",
     "0 when the logs were printed, 1 when there is no such job or task, or a task has no log yet.",
     "muster logs digits -f worker/0"},
    {"wait",
     "Waits until a job of a cluster has ended and prints its progress as muster run does. JOB is "
     "a name, job/NAME or the manifest.",
     "0 when the job has succeeded, 1 when it has failed, 3 when the outcome is unknown (no such "
     "job, deleted meanwhile, no access), 124 when it has not ended within --timeout.",
     "muster wait digits --timeout 10m"},
    {"top", "Lists a cluster's jobs with phase, step, speed and loss, the fastest first.", NULL,
     "muster top -A"},
    {"explain",
     "Combines the status of the job, its pods, its task servers and its events: why the job "
     "waits, what is slow, what has failed, and what to do.",
     NULL, "muster explain digits"},
    {"train",
     "The program of a worker, chief or evaluator that muster run and the operator start: the task "
     "server with the built-in trainer. TF_CONFIG gives the cluster and the task, MUSTER_TRAIN the "
     "training.",
     "0 when the goal is reached, 3 when the machine lacks the requested kernels, 138 when the "
     "cluster was lost and a retry may succeed, 143 when stopped by a signal, 1 otherwise.",
     NULL},
    {"completion",
     "Prints the completion script of bash, fish or zsh for verbs, options and files. In fish: "
     "muster completion fish | source.",
     NULL, "source <(muster completion bash)"},
    {"man", "Prints the manual page of muster or of one verb.", NULL, "muster man run | man -l -"},
    {NULL, NULL, NULL, NULL},
};
