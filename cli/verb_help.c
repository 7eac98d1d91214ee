/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verb_help.h"

#include <stddef.h>

const struct verb_option verb_options[] = {
    {"run", "--fresh", "move what an earlier run left out of the way and begin anew"},
    {"run", "--logs DIR", "where each task's log goes; else DIR is logs/ in the checkpoint folder"},
    {"run", "--log-size MIB",
     "what a task's log takes of the disk at most: when half of it is full it becomes .log.1 and a "
     "new one begins; 64 without this, 0: no limit"},
    {"run", "--scale TASK=N", "with N of that task; a job that runs already is changed"},
    {"validate", "--plan", "say what the operator would create first"},
    {"submit", "--force-conflicts",
     "take over fields that another manager set, such as replicas after kubectl scale"},
    {"submit", "-n NAMESPACE", "the namespace of a manifest that names none"},
    {"submit", "--context NAME", "another context of the kubeconfig"},
    {"logs", "-f",
     "go on as the logs grow, wait for tasks that have not started and follow tasks that are "
     "started again; ends when the job has ended"},
    {"logs", "--tail N", "only the last N lines of each log"},
    {"logs", "--previous", "of the container before its last restart"},
    {"logs", "-n NAMESPACE", "where the job is, when not in the context's own namespace"},
    {"logs", "--context NAME", "another context of the kubeconfig"},
    {"wait", "--timeout TIME", "at most so long: seconds, or 90s, 10m, 2h"},
    {"wait", "-n NAMESPACE", "where the job is, when not in the context's own namespace"},
    {"wait", "--context NAME", "another context of the kubeconfig"},
    {"top", "-n NAMESPACE", "the jobs of that namespace, not of the context's own"},
    {"top", "-A", "the jobs of all namespaces"},
    {"top", "--once", "one look, not one every two seconds"},
    {"top", "--context NAME", "another context of the kubeconfig"},
    {"explain", "-n NAMESPACE", "where the job is, when not in the context's own namespace"},
    {"explain", "--context NAME", "another context of the kubeconfig"},
    {"train", "--manifest JOB.yaml", "what to train, instead of MUSTER_TRAIN"},
    {NULL, NULL, NULL},
};

const struct verb_text verb_texts[] = {
    {"run",
     "Reads a manifest, starts a process for each task on this machine as the operator would start "
     "pods on a cluster, shows how the training goes, restarts what fails by the manifest's "
     "policy, "
     "and goes on from the latest checkpoint. Ctrl-C saves and ends; a second one ends at once.",
     "0 when the job has succeeded, 1 when it has failed, 130 when interrupted.",
     "muster run examples/digits.yaml"},
    {"scale",
     "Changes the number of workers of a job that muster run runs in another terminal, named by "
     "its "
     "manifest or by its name. The ps tasks and the variables on them stay.",
     NULL, "muster scale digits worker=4"},
    {"validate",
     "Checks manifests with the rules of the API server's schema and of the operator. What is "
     "wrong "
     "is one line with file, line, field and what was expected.",
     "0 when all are valid, 1 when one is not.", "muster validate --plan examples/*.yaml"},
    {"convert",
     "Writes DistributedTrainingJobs for Kubeflow TFJobs to standard output; what has no "
     "counterpart becomes a comment.",
     NULL, "muster convert tfjob.yaml > job.yaml"},
    {"checkpoint",
     "ls: the checkpoints of a folder, the latest marked. show: the tensors of one with types and "
     "shapes, or the values of one tensor. diff: the tensors that two have and have not in common, "
     "and how far the values are apart. Checkpoints may be TensorFlow's.",
     "diff: 0 when they are equal, 1 when not, 2 when one cannot be read.",
     "muster checkpoint show out/model.ckpt-2000"},
    {"events",
     "Draws the scalars of event files, those of TensorFlow too, as curves in the terminal.", NULL,
     "muster events out/digits"},
    {"status",
     "Asks a task server over HTTP for its state: sessions, steps that wait and for what, "
     "resources.",
     NULL, "muster status localhost:8080"},
    {"submit",
     "Checks a manifest as muster validate does and applies it to a cluster (server-side apply), "
     "then prints whether the job was created, changed or unchanged.",
     "0 when the API server has accepted the job, 1 when the manifest is wrong, the API server "
     "refuses it or cannot be reached.",
     "muster submit examples/digits.yaml"},
    {"logs",
     "Prints the logs of all tasks of a job, of one kind of task (worker) or of one task "
     "(worker/0). "
     "JOB is a name, job/NAME or the manifest. Lines of several tasks begin with their task.",
     "0 when the logs were printed, 1 when there is no such job or task, or a task has no log yet.",
     "muster logs digits -f worker/0"},
    {"wait",
     "Waits until a job of a cluster has ended and prints its progress as muster run does. JOB is "
     "a "
     "name, job/NAME or the manifest.",
     "0 when the job has succeeded, 1 when it has failed, 3 when that cannot be known (no such "
     "job, "
     "deleted meanwhile, no access), 124 when it has not ended within --timeout.",
     "muster wait digits --timeout 10m"},
    {"top", "Shows a cluster's jobs with phase, step, speed and loss, the busiest first.", NULL,
     "muster top -A"},
    {"explain",
     "Puts together what the job, its pods, its task servers and the events say: why it waits, "
     "what "
     "is slow, what has failed, and what to do.",
     NULL, "muster explain digits"},
    {"train",
     "What muster run and the operator start for a worker, chief or evaluator: the task server "
     "with "
     "the ready-made trainer beside it. TF_CONFIG says which task of which cluster it is, "
     "MUSTER_TRAIN what to train.",
     "0 when the goal is reached, 138 when the cluster was lost and another try may help, 143 when "
     "told to stop, 1 for anything else.",
     NULL},
    {"completion",
     "Prints what bash, fish or zsh needs to complete verbs, their options and files. In fish: "
     "muster completion fish | source.",
     NULL, "source <(muster completion bash)"},
    {"man", "Prints the manual page of muster, or of one of its verbs.", NULL,
     "muster man run | man -l -"},
    {NULL, NULL, NULL, NULL},
};
