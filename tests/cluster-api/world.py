# SPDX-License-Identifier: Apache-2.0
"""Functions shared by the Python scenarios: calls to the API server, a proxy between it and an operator that can
kill the operator at any request, the operator's process, and a simulated kubelet.

Each case has its own namespace, so that many cases run at once on one API server."""
import http.client
import http.server
import json
import os
import signal
import socketserver
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.parse

K8S_DIR = os.environ["K8S_DIR"]
PORT = int(os.environ["K8S_PORT"])
OPERATOR = os.environ.get("OPERATOR", "build/bin/muster-operator")
JOBS = "/apis/muster.dev/v1/namespaces/%s/distributedtrainingjobs"


def tls():
    context = ssl.create_default_context(cafile=f"{K8S_DIR}/pki/ca.crt")
    context.load_cert_chain(f"{K8S_DIR}/pki/admin.crt", f"{K8S_DIR}/pki/admin.key")
    return context


TLS = tls()
RBAC = "/apis/rbac.authorization.k8s.io/v1"
local = threading.local()
made = []


def connect(timeout=30):
    return http.client.HTTPSConnection("127.0.0.1", PORT, context=TLS, timeout=timeout)


def call(method, path, body=None, kind="application/json"):
    """Sends a request and returns (status, object); each thread keeps its connection."""
    for attempt in (0, 1):
        if not getattr(local, "connection", None):
            local.connection = connect()
        try:
            local.connection.request(method, path, json.dumps(body) if body is not None else None,
                                     {"Content-Type": kind, "Accept": "application/json"})
            answer = local.connection.getresponse()
            text = answer.read()
            plain = not (answer.getheader("Content-Type") or "").startswith("application/json")
            return answer.status, {"message": text.decode()} if plain else json.loads(text)
        except (OSError, http.client.HTTPException):
            local.connection = None
            if attempt:
                raise


def must(method, path, body=None, kind="application/json"):
    status, said = call(method, path, body, kind)
    if status >= 300:
        raise AssertionError(f"{method} {path}: {status} {said.get('message')}")
    return said


def merge(path, body):
    return must("PATCH", path, body, "application/merge-patch+json")


def make_namespace(name):
    """Creates a namespace. Namespaces are not deleted here, so the name contains the time."""
    name = f"{name}-{time.time_ns() // 1000000 % 10 ** 9}"
    must("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    made.append(name)
    return name


def tidy():
    """Deletes the jobs of this run, so that no later operator finds them."""
    for ns in made:
        call("DELETE", JOBS % ns)
        for path in ("api/v1/namespaces/%s/pods", "api/v1/namespaces/%s/services",
                     "apis/networking.k8s.io/v1/namespaces/%s/networkpolicies"):
            call("DELETE", "/" + path % ns, {"gracePeriodSeconds": 0})


def manifest(name, **spec):
    return {"apiVersion": "muster.dev/v1", "kind": "DistributedTrainingJob", "metadata": {"name": name}, "spec": spec}


def until(what, test, limit=20.0, step=0.05):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        got = test()
        if got:
            return got
        time.sleep(step)
    raise AssertionError(f"never: {what}")


def pairs_of(rules):
    """Returns (group, resource, verb) for each rule of a role."""
    return [(group, resource, verb) for rule in rules for group in rule["apiGroups"] for resource in rule["resources"]
            for verb in rule["verbs"]]


def rules_of(pairs):
    return [{"apiGroups": [g], "resources": [r], "verbs": [v]} for g, r, v in pairs]


def grant(namespace, user, pairs):
    """Creates a Role in the namespace with these rules, and a ClusterRole with the rules for nodes."""
    for kind, where, kept in (("Role", f"/namespaces/{namespace}", [p for p in pairs if p[1] != "nodes"]),
                              ("ClusterRole", "", [p for p in pairs if p[1] == "nodes"])):
        path = f"{RBAC}{where}/{kind.lower()}s"
        for p, body in ((path, {"metadata": {"name": user}, "rules": rules_of(kept)}),
                        (path[:-1] + "bindings", {"metadata": {"name": user},
                         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": user},
                         "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}]})):
            call("DELETE", f"{p}/{user}")
            must("POST", p, body)


class Proxy:
    """http:// in front of the API server, which it calls as an administrator or as `user`.

    hook(method, path, number) is called before each request.  If it returns "before" or "after", the proxy calls
    self.kill() at that time and drops the response.  "lose" only drops the response, and "gone" answers with 410."""

    def __init__(self, user=None):
        self.user, self.hook, self.kill = user, None, None
        self.log, self.lock = [], threading.Lock()
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def handle_one(self):
                try:
                    proxy.pass_on(self)
                except (OSError, http.client.HTTPException):
                    self.close_connection = True

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_one

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, request, client_address):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def note(self, *entry):
        with self.lock:
            self.log.append((time.monotonic(), *entry))
            return len(self.log)

    def writes(self):
        with self.lock:
            return sum(1 for e in self.log if e[1] != "GET")

    def drop(self, handler):
        handler.close_connection = True
        handler.connection.close()

    def pass_on(self, handler):
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length) if length else None
        number = self.note(handler.command, handler.path)
        fate = self.hook(handler.command, handler.path, number) if self.hook else None
        if fate == "before":
            self.kill()
            return self.drop(handler)
        if fate == "gone":
            return self.answer(handler, 410, json.dumps({"kind": "Status", "status": "Failure", "code": 410,
                                                         "reason": "Expired", "message": "too old"}).encode())
        headers = {k: v for k, v in handler.headers.items() if k.lower() in ("content-type", "accept", "user-agent")}
        if self.user:
            headers["Impersonate-User"] = self.user
        upstream = connect(700)
        try:
            upstream.request(handler.command, handler.path, body, headers)
            answer = upstream.getresponse()
            if "watch=1" in handler.path and answer.status == 200:
                if fate == "after":
                    self.kill()
                    return self.drop(handler)
                return self.stream(handler, answer)
            data = answer.read()
            if fate == "after":
                self.kill()
            if fate in ("after", "lose"):
                return self.drop(handler)
            with self.lock:
                self.log[number - 1] += (answer.status,)
            self.answer(handler, answer.status, data, answer.getheader("Retry-After"),
                        answer.getheader("Content-Type"))
        finally:
            upstream.close()

    @staticmethod
    def answer(handler, status, data, retry_after=None, form=None):
        handler.send_response(status)
        handler.send_header("Content-Type", form or "application/json")
        if retry_after:
            handler.send_header("Retry-After", retry_after)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    @staticmethod
    def stream(handler, answer):
        handler.send_response(200)
        handler.send_header("Content-Type", answer.getheader("Content-Type"))
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        while True:
            data = answer.read1(65536)
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            handler.wfile.flush()
            if not data:
                return


class Operator:
    def __init__(self, proxy, namespace, *more, leader=False, log=None):
        self.config = tempfile.NamedTemporaryFile("w", suffix=".kubeconfig")
        json.dump({"current-context": "t", "contexts": [{"name": "t", "context": {"cluster": "t"}}],
                   "clusters": [{"name": "t", "cluster": {"server": f"http://127.0.0.1:{proxy.port}"}}]}, self.config)
        self.config.flush()
        self.log = open(log or os.path.join(K8S_DIR, "log", f"operator-{namespace or 'all'}.log"), "ab")
        self.process = subprocess.Popen(
            [OPERATOR, f"--kubeconfig={self.config.name}", "--image=localhost/muster-task:dev",
             "--image-gpu=localhost/muster-task:dev", "--metrics-port=0", "--probe-port=0", "--progress-seconds=0",
             f"--leader-elect={'true' if leader else 'false'}",
             *([f"--namespace={namespace}", f"--lease-namespace={namespace}"] if namespace else []), *more],
            stdout=self.log, stderr=self.log, env={**os.environ, "MUSTER_LOG": "debug"})

    def signal(self, number):
        try:
            os.kill(self.process.pid, number)
        except ProcessLookupError:
            pass

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("the operator did not stop when asked")
        finally:
            self.log.close()
            self.config.close()


RUNNING = {"status": {"phase": "Running", "podIP": "127.0.0.9", "podIPs": [{"ip": "127.0.0.9"}],
                      "conditions": [{"type": "Ready", "status": "True"}],
                      "containerStatuses": [{"name": "muster", "ready": True, "restartCount": 0, "image": "x",
                                             "imageID": "x", "state": {"running": {"startedAt": None}}}]}}


class Kubelet:
    """Runs the new pods of a namespace, ends those that are being deleted, and records labels and spec of every pod by
    name and uid.  With a node, it first binds the pods to it: the API server removes an unbound pod at once, and
    otherwise waits for the kubelet."""

    def __init__(self, namespace, play=True, node=None):
        self.path = f"/api/v1/namespaces/{namespace}/pods"
        self.uids, self.pods, self.play, self.node = {}, {}, play, node
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.stopped.is_set():
            try:
                self.watch()
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.1)

    def watch(self):
        listed = must("GET", self.path)
        for pod in listed["items"]:
            self.see("ADDED", pod)
        connection = connect(2)
        connection.request("GET", f"{self.path}?watch=1&resourceVersion={listed['metadata']['resourceVersion']}"
                                  "&timeoutSeconds=60")
        answer = connection.getresponse()
        while not self.stopped.is_set():
            try:
                line = answer.readline()
            except TimeoutError:
                break
            if not line:
                break
            event = json.loads(line)
            self.see(event["type"], event["object"])
        connection.close()

    def see(self, change, pod):
        name = pod["metadata"].get("name")
        if change not in ("ADDED", "MODIFIED", "DELETED") or not name:
            return
        self.uids.setdefault(name, {})[pod["metadata"]["uid"]] = [pod["metadata"].get("labels"), pod["spec"]]
        if change == "DELETED":
            self.pods.pop(name, None)
            return
        self.pods[name] = pod
        if not self.play:
            return
        if pod["metadata"].get("deletionTimestamp"):
            call("DELETE", f"{self.path}/{name}", {"gracePeriodSeconds": 0})
        elif pod["status"].get("phase") == "Pending":
            if self.node and not pod["spec"].get("nodeName"):
                call("POST", f"{self.path}/{name}/binding",
                     {"metadata": {"name": name}, "target": {"kind": "Node", "name": self.node}})
            call("PATCH", f"{self.path}/{name}/status", RUNNING, "application/merge-patch+json")

    def end(self, name, code):
        phase = "Failed" if code else "Succeeded"
        merge(f"{self.path}/{name}/status",
              {"status": {"phase": phase, "conditions": [{"type": "Ready", "status": "False"}], "containerStatuses": [
                  {"name": "muster", "ready": False, "restartCount": 0, "image": "x", "imageID": "x",
                   "state": {"running": None, "terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}}]}})

    def stop(self):
        self.stopped.set()
        self.thread.join(5)


def in_parallel(cases, run, width):
    """Runs run(case) for each case in parallel; returns [(case, message)] of the failed ones."""
    waiting, failed, lock = list(cases), [], threading.Lock()

    def work():
        while True:
            with lock:
                if not waiting:
                    return
                case = waiting.pop(0)
            try:
                run(case)
            except Exception as e:
                with lock:
                    failed.append((case, f"{type(e).__name__}: {e}"))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(width)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return failed
