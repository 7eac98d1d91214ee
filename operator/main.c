/* SPDX-License-Identifier: Apache-2.0 */
/* muster-operator: runs DistributedTrainingJobs on Kubernetes. */
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "operator/controller/dry_run.h"
#include "operator/controller/manager.h"

static const char usage[] =
    "usage: muster-operator [OPTION]...\n"
    "Runs DistributedTrainingJobs on a Kubernetes cluster.\n"
    "\n"
    "  --kubeconfig=FILE        instead of KUBECONFIG, the pod's service account, ~/.kube/config\n"
    "  --context=NAME           of the kubeconfig, instead of its current one\n"
    "  --image=IMAGE            of muster-task for jobs that name none [MUSTER_TASK_IMAGE]\n"
    "  --image-gpu=IMAGE        likewise with GPU kernels; none: kernels auto and prefer-gpu\n"
    "                           use no GPU [MUSTER_TASK_IMAGE_GPU]\n"
    "  --image-tensorboard=IMAGE  for spec.tensorboard [MUSTER_TENSORBOARD_IMAGE]\n"
    "  --namespace=NAME,...     watch these namespaces only; may be repeated [MUSTER_NAMESPACE]\n"
    "  --nodes=BOOL             look at nodes to choose kernels (true; false with --namespace)\n"
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
    "  --once --dry-run FILE    print what would be done for a manifest, and end\n"
    "  --objects                with --dry-run: print the objects\n"
    "  --version, --help\n";

/* A kubelet takes some time to bring a new certificate to its pods. */
enum { CERT_LIFE_LEAST = 60 };

static struct controller_stop stop;

static void on_signal(int number)
{
	if (controller_stop(&stop))
		_exit(1); /* asked twice */
}

enum {
	OPT_KUBECONFIG = 256,
	OPT_CONTEXT,
	OPT_IMAGE,
	OPT_IMAGE_GPU,
	OPT_IMAGE_BOARD,
	OPT_NAMESPACE,
	OPT_NODES,
	OPT_LEADER,
	OPT_LEASE_NS,
	OPT_WORKERS,
	OPT_METRICS,
	OPT_PROBE,
	OPT_PROGRESS,
	OPT_CERT_LIFE,
	OPT_TOKEN_KEY,
	OPT_STATUS_FROM,
	OPT_ONCE,
	OPT_DRY,
	OPT_OBJECTS,
	OPT_VERSION,
};
static const struct option long_options[] = {
    {"kubeconfig", required_argument, 0, OPT_KUBECONFIG},
    {"context", required_argument, 0, OPT_CONTEXT},
    {"image", required_argument, 0, OPT_IMAGE},
    {"image-gpu", required_argument, 0, OPT_IMAGE_GPU},
    {"image-tensorboard", required_argument, 0, OPT_IMAGE_BOARD},
    {"namespace", required_argument, 0, OPT_NAMESPACE},
    {"nodes", required_argument, 0, OPT_NODES},
    {"leader-elect", required_argument, 0, OPT_LEADER},
    {"lease-namespace", required_argument, 0, OPT_LEASE_NS},
    {"workers", required_argument, 0, OPT_WORKERS},
    {"metrics-port", required_argument, 0, OPT_METRICS},
    {"probe-port", required_argument, 0, OPT_PROBE},
    {"progress-seconds", required_argument, 0, OPT_PROGRESS},
    {"certificate-seconds", required_argument, 0, OPT_CERT_LIFE},
    {"token-key-file", required_argument, 0, OPT_TOKEN_KEY},
    {"status-from", required_argument, 0, OPT_STATUS_FROM},
    {"once", no_argument, 0, OPT_ONCE},
    {"dry-run", required_argument, 0, OPT_DRY},
    {"objects", no_argument, 0, OPT_OBJECTS},
    {"version", no_argument, 0, OPT_VERSION},
    {"help", no_argument, 0, 'h'},
    {0, 0, 0, 0},
};

struct arguments {
	struct controller_options controller;
	const char *kubeconfig, *context, *dry_run;
	char namespaces[64 * 64]; /* of all --namespace */
	int nodes;                /* 1 yes, -1 no, 0 not said */
	bool objects;
};

static const char *from_env(const char *name, const char *otherwise)
{
	const char *value = getenv(name);
	return value && *value ? value : otherwise;
}

static int read_number(const char *option, const char *text, int max, int *out)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (*end || end == text || n < 0 || n > max) {
		fprintf(stderr, "muster-operator: --%s: '%s' is no number from 0 to %d\n", option,
			text, max);
		return -1;
	}
	*out = (int)n;
	return 0;
}

/* 0: go on; 1: all done; -1: wrong. */
static int read_option(struct arguments *a, int which)
{
	int n = 0, rc = 0;

	switch (which) {
	case OPT_KUBECONFIG:
		a->kubeconfig = optarg;
		return 0;
	case OPT_CONTEXT:
		a->context = optarg;
		return 0;
	case OPT_IMAGE:
		a->controller.image = optarg;
		return 0;
	case OPT_IMAGE_GPU:
		a->controller.image_gpu = optarg;
		return 0;
	case OPT_IMAGE_BOARD:
		a->controller.image_board = optarg;
		return 0;
	case OPT_NAMESPACE:
		snprintf(a->namespaces + strlen(a->namespaces),
			 sizeof(a->namespaces) - strlen(a->namespaces), "%s,", optarg);
		return 0;
	case OPT_NODES:
		a->nodes = strcmp(optarg, "false") != 0 ? 1 : -1;
		return 0;
	case OPT_LEADER:
		a->controller.leader_election = strcmp(optarg, "false") != 0;
		return 0;
	case OPT_LEASE_NS:
		a->controller.lease_namespace = optarg;
		return 0;
	case OPT_WORKERS:
		return read_number("workers", optarg, 32, &a->controller.workers);
	case OPT_METRICS:
		return read_number("metrics-port", optarg, 65535, &a->controller.metrics_port);
	case OPT_PROBE:
		return read_number("probe-port", optarg, 65535, &a->controller.probe_port);
	case OPT_PROGRESS:
		rc = read_number("progress-seconds", optarg, 86400, &n);
		a->controller.progress_seconds = n;
		return rc;
	case OPT_CERT_LIFE:
		rc = read_number("certificate-seconds", optarg, 366 * 86400,
				 &a->controller.cert_life);
		if (!rc && a->controller.cert_life < CERT_LIFE_LEAST) {
			fprintf(stderr, "muster-operator: --certificate-seconds: less than %d\n",
				CERT_LIFE_LEAST);
			rc = -1;
		}
		return rc;
	case OPT_STATUS_FROM:
		a->controller.status_from = optarg;
		return 0;
	case OPT_TOKEN_KEY:
		a->controller.token_key_file = optarg;
		return 0;
	case OPT_DRY:
		a->dry_run = optarg;
		return 0;
	case OPT_ONCE:
		return 0;
	case OPT_OBJECTS:
		a->objects = true;
		return 0;
	case OPT_VERSION:
		puts("muster-operator " MUSTER_VERSION);
		return 1;
	case 'h':
		fputs(usage, stdout);
		return 1;
	default:
		fputs("muster-operator: see --help\n", stderr);
		return -1;
	}
}

static int print_plan(const struct arguments *a)
{
	MU_AUTO_BUF out = {0};
	struct mu_err err = {0};

	if (dry_run(&out, a->dry_run, a->controller.image, a->objects, &err) < 0) {
		fprintf(stderr, "muster-operator: %s\n", err.msg);
		return 1;
	}
	fwrite(out.data, 1, out.len, stdout);
	return 0;
}

static int serve(struct arguments *a)
{
	struct sigaction on = {.sa_handler = on_signal};
	struct kube_config config;
	struct mu_err err = {0};
	char identity[128] = "";
	MU_AUTO_FREE char *ns = NULL;

	controller_stop_init(&stop);
	sigaction(SIGTERM, &on, NULL);
	sigaction(SIGINT, &on, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (kube_config_load(&config, a->kubeconfig, a->context, &err) < 0) {
		mu_error("operator", "%s", err.msg);
		return 1;
	}
	gethostname(identity, sizeof(identity) - 1);
	snprintf(identity + strlen(identity), sizeof(identity) - strlen(identity), "_%d",
		 (int)getpid());
	a->controller.identity = identity;
	if (a->namespaces[0])
		a->controller.namespaces = a->namespaces;
	a->controller.nodes = a->nodes ? a->nodes > 0 : !a->controller.namespaces;
	ns = mu_xstrdup(config.ns ? config.ns : "default");
	if (!a->controller.lease_namespace)
		a->controller.lease_namespace = ns;
	mu_info("operator", "muster-operator " MUSTER_VERSION ", server %s", config.server);
	if (manager_run(&a->controller, &config, &stop, &err) < 0) {
		mu_error("operator", "%s", err.msg);
		kube_config_fini(&config);
		return 1;
	}
	mu_info("operator", "stopped");
	return 0;
}

int main(int argc, char **argv)
{
	struct arguments a = {
	    .controller = {.image = from_env("MUSTER_TASK_IMAGE", "localhost/muster-task:dev"),
			   .image_gpu = from_env("MUSTER_TASK_IMAGE_GPU", NULL),
			   .image_board =
			       from_env("MUSTER_TENSORBOARD_IMAGE", "localhost/muster-task-tf:dev"),
			   .namespaces = from_env("MUSTER_NAMESPACE", NULL),
			   .lease_namespace = from_env("POD_NAMESPACE", NULL),
			   .leader_election = true,
			   .workers = 8,
			   .metrics_port = 8080,
			   .probe_port = 8081,
			   .progress_seconds = 3},
	};
	int which, rc;

	/* a heap for each thread would keep what bursts left in it */
	mallopt(M_ARENA_MAX, 2);
	/* each large piece (OpenSSL takes some for a call) would first join all small free
	 * ones */
	mallopt(M_MXFAST, 0);
	/* or the first large answer that is freed would raise the limit for good */
	mallopt(M_TRIM_THRESHOLD, 256 << 10);
	mu_log_init("muster-operator");
	while ((which = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		rc = read_option(&a, which);
		if (rc != 0)
			return rc > 0 ? 0 : 2;
	}
	if (optind < argc) {
		fprintf(stderr, "muster-operator: unexpected '%s'; see --help\n", argv[optind]);
		return 2;
	}
	return a.dry_run ? print_plan(&a) : serve(&a);
}
