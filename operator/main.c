/* SPDX-License-Identifier: Apache-2.0 */
/* muster-operator: runs DistributedTrainingJobs on Kubernetes. */
#include <getopt.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "operator/controller/manager.h"

static const char usage[] =
    "usage: muster-operator [OPTION]...\n"
    "Runs DistributedTrainingJobs on a Kubernetes cluster.\n"
    "\n"
    "  --kubeconfig=FILE        instead of KUBECONFIG, ~/.kube/config, the pod's service account\n"
    "  --context=NAME           of the kubeconfig, instead of its current one\n"
    "  --image=IMAGE            of muster-task for jobs that name none [MUSTER_TASK_IMAGE]\n"
    "  --image-gpu=IMAGE        likewise with GPU kernels; none: kernels auto and prefer-gpu\n"
    "                           use no GPU [MUSTER_TASK_IMAGE_GPU]\n"
    "  --image-tensorboard=IMAGE  for spec.tensorboard [MUSTER_TENSORBOARD_IMAGE]\n"
    "  --namespace=NAME,...     watch these namespaces only; may be repeated [MUSTER_NAMESPACE]\n"
    "  --nodes=BOOL             watch nodes to choose kernels (true; false with --namespace)\n"
    "  --leader-elect=BOOL      hold a Lease while working (true)\n"
    "  --lease-namespace=NAME   where the Lease is (the pod's namespace)\n"
    "  --workers=N              jobs reconciled at once (8)\n"
    "  --metrics-port=N         /metrics (8080; 0: none)\n"
    "  --probe-port=N           /healthz and /readyz (8081; 0: none)\n"
    "  --progress-seconds=N     interval of the requests to tasks: progress, members (3; 0: none)\n"
    "  --certificate-seconds=N  how long certificates of tasks live, 60 or more (172800); they\n"
    "                           are replaced after two thirds of it\n"
    "  --status-from=NAME,...   namespaces beside the operator's whose pods may reach the status\n"
    "                           port of tasks that have a NetworkPolicy\n"
    "  --token-key-file=FILE    the key of the jobs' bearer tokens; when there is no such file "
    "the\n"
    "                           operator creates the Secret muster-operator-key to mount there\n"
    "  --version, --help\n";

static struct controller_stop stop;

static void on_signal(int number)
{
	if (controller_stop(&stop))
		_exit(1); /* asked twice */
}

static struct {
	struct controller_options controller;
	const char *kubeconfig, *context, *nodes, *leader_election;
	char namespaces[64 * 64]; /* of all --namespace */
} args = {
    .controller = {.workers = 8, .metrics_port = 8080, .probe_port = 8081, .progress_seconds = 3},
    .leader_election = "true",
};

/* An option with a value: a text, a number in its range, or (--namespace) one more text. */
static const struct setting {
	const char *name, **text;
	int *number, least, most;
} settings[] = {
    {.name = "kubeconfig", .text = &args.kubeconfig},
    {.name = "context", .text = &args.context},
    {.name = "image", .text = &args.controller.image},
    {.name = "image-gpu", .text = &args.controller.image_gpu},
    {.name = "image-tensorboard", .text = &args.controller.image_tensorboard},
    {.name = "namespace"},
    {.name = "nodes", .text = &args.nodes},
    {.name = "leader-elect", .text = &args.leader_election},
    {.name = "lease-namespace", .text = &args.controller.lease_namespace},
    {.name = "status-from", .text = &args.controller.status_from},
    {.name = "token-key-file", .text = &args.controller.token_key_file},
    {"workers", NULL, &args.controller.workers, 1, 32},
    {"metrics-port", NULL, &args.controller.metrics_port, 0, 65535},
    {"probe-port", NULL, &args.controller.probe_port, 0, 65535},
    {"progress-seconds", NULL, &args.controller.progress_seconds, 0, 86400},
    /* a kubelet takes some time to bring a new certificate to its pods */
    {"certificate-seconds", NULL, &args.controller.cert_life, 60, 366 * 86400},
};

static const char *from_env(const char *name, const char *otherwise)
{
	const char *value = getenv(name);
	return value && *value ? value : otherwise;
}

static bool read_setting(const struct setting *s, const char *value)
{
	size_t used = strlen(args.namespaces);
	char *end;
	long n = strtol(value, &end, 10);

	if ((s->text == &args.nodes || s->text == &args.leader_election) &&
	    strcmp(value, "true") != 0 && strcmp(value, "false") != 0) {
		fprintf(stderr, "muster-operator: --%s: '%s' is neither true nor false\n", s->name,
			value);
		return false;
	}
	if (s->text)
		*s->text = value;
	else if (!s->number)
		snprintf(args.namespaces + used, sizeof(args.namespaces) - used, "%s,", value);
	if (!s->number)
		return true;
	*s->number = (int)n;
	if (!*end && end != value && n >= s->least && n <= s->most)
		return true;
	fprintf(stderr, "muster-operator: --%s: '%s' is no number from %d to %d\n", s->name, value,
		s->least, s->most);
	return false;
}

/* Returns the exit status of the program when it ends here, else -1. */
static int read_options(int argc, char **argv)
{
	struct option options[MU_COUNT(settings) + 3] = {
	    {"version", no_argument, NULL, 'v'},
	    {"help", no_argument, NULL, 'h'},
	};
	int which;

	for (unsigned i = 0; i < MU_COUNT(settings); i++)
		options[2 + i] =
		    (struct option){settings[i].name, required_argument, NULL, 256 + i};
	while ((which = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (which == 'v')
			puts("muster-operator " MUSTER_VERSION);
		else if (which == 'h')
			fputs(usage, stdout);
		else if (which == '?')
			fputs("muster-operator: see --help\n", stderr);
		if (which == 'v' || which == 'h')
			return 0;
		if (which == '?' || (which && !read_setting(&settings[which - 256], optarg)))
			return 2;
	}
	if (optind == argc)
		return -1;
	fprintf(stderr, "muster-operator: unexpected '%s'; see --help\n", argv[optind]);
	return 2;
}

static void set_defaults(struct controller_options *o)
{
	o->image = from_env("MUSTER_TASK_IMAGE", "localhost/muster-task:dev");
	o->image_gpu = from_env("MUSTER_TASK_IMAGE_GPU", NULL);
	o->image_tensorboard = from_env("MUSTER_TENSORBOARD_IMAGE", "localhost/muster-task-tf:dev");
	o->namespaces = from_env("MUSTER_NAMESPACE", NULL);
	o->lease_namespace = from_env("POD_NAMESPACE", NULL);
}

/* The settings that follow from other options and from where the operator runs. */
static void derive_settings(struct controller_options *o, const struct kube_config *config)
{
	static char identity[128], ns[64];
	size_t n;

	gethostname(identity, sizeof(identity) / 2);
	n = strlen(identity);
	snprintf(identity + n, sizeof(identity) - n, "_%d", (int)getpid());
	o->identity = identity;
	if (args.namespaces[0])
		o->namespaces = args.namespaces;
	o->nodes = args.nodes ? strcmp(args.nodes, "false") != 0 : !o->namespaces;
	o->leader_election = strcmp(args.leader_election, "false") != 0;
	snprintf(ns, sizeof(ns), "%s", config->ns ? config->ns : "default");
	if (!o->lease_namespace)
		o->lease_namespace = ns;
}

int main(int argc, char **argv)
{
	struct controller_options *o = &args.controller;
	struct sigaction on = {.sa_handler = on_signal};
	struct kube_config config;
	struct mu_err err = {0};
	int rc;

	mu_log_init("muster-operator");
	set_defaults(o);
	if ((rc = read_options(argc, argv)) >= 0)
		return rc;
	controller_stop_init(&stop);
	sigaction(SIGTERM, &on, NULL);
	sigaction(SIGINT, &on, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (kube_config_load(&config, args.kubeconfig, args.context, &err) < 0) {
		mu_error("operator", "%s", err.msg);
		return 1;
	}
	derive_settings(o, &config);
	mu_info("operator", "muster-operator " MUSTER_VERSION ", server %s", config.server);
	rc = manager_run(o, &config, &stop, &err);
	if (rc < 0)
		mu_error("operator", "%s", err.msg);
	else
		mu_info("operator", "stopped");
	kube_config_fini(&config);
	return rc < 0;
}
