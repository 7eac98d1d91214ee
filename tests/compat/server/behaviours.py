# SPDX-License-Identifier: Apache-2.0
"""Server behaviour beyond single steps: each function of a program is one line of the report."""
import json
import re

from cluster import PATIENCE, PROGRAMS, Cluster
from compare import Different, both, close, core, folder, report
from job import Job, with_each

# Known differences with their reasons; a case that passes nevertheless is reported.
MISSING = {}  # program: why it fails on our servers


def compare_each(group, stock, ours):
    for name in stock:
        error = None
        try:
            close(stock[name], ours.get(name))
        except Different as e:
            error = e
        # no server error: the program would compare nothing
        if isinstance(stock[name], str) and re.match(r"raises \w+: |takes longer", stock[name]):
            error = f"it fails with stock: {stock[name]}"
        words = f"{group}: {name.replace('_', ' ')}"
        if name in MISSING:
            report(words, None if error else "it passes: take it off the list", f"known to differ: {MISSING[name]}")
        else:
            report(words, error)


def sessions():
    """sessions, containers, queues, callables, partial runs"""
    compare_each("sessions", *both(lambda c: c.run("behaviours", seconds=900) | c.run("step_kinds", seconds=900)))


def lifetimes():
    """how long the state of each kind of op lasts: sessions closed, side by side, extended, reset, isolated"""
    stock, ours = both(lambda c: c.run("lifetimes", seconds=900))
    different = [f"{name}: stock {stock[name]}, ours {ours.get(name)}" for name in stock if stock[name] != ours.get(name)]
    if different:
        raise Different("\n".join(different))
    return f"{len(stock)} lives"


def raw():
    """messages that only another master or a raw client sends"""
    compare_each("raw", *both(lambda c: c.run("raw")))


# Stock aborts, or reports a consequence of an error that ours names.
ABORTS = {"missing value of a constant", "number below its minimum", "constant with a negative size", "only a control input"}
ANY_TEXT = {"int for a type", "string for a type", "attribute without a value", "placeholder for a type", "type that is none", "type zero",
            "negative number", "string for a function", "device that is no name", "scalar for a matrix",
            "two missing attributes", "reference as a type", "handle that asks for another type"}
# Ours reports these only when a step needs the node: it accepts unknown ops, functions and devices.
LATE = {"no op", "op that is none", "function that is not there", "string for a function", "device that is no name", "device that is not there",
        "partners apart"}


def broken_text(text):
    """Removes the op's signature, device names and earlier log messages of the process."""
    return re.sub(r"Op<name=(\w+).*?>(?=; NodeDef|$)", r"Op<\1>", core(text.split("\nRecent warning")[0].split(" in binary running on")[0]))


def broken_graphs():
    """graphs that no client library builds: errors of CreateSession, ExtendSession and RunStep"""
    stock, ours = both(lambda c: c.run("broken_graphs", *sorted(ABORTS)))
    for name, (code, text) in stock.items():
        graph, _, way = name.partition(", ")
        our_code, our_text = ours[name]
        if graph in LATE:
            if not way and our_code.removeprefix("step: ") != code and graph not in ("no op", "partners apart", "function that is not there"):
                report(f"broken graphs: {name}", f"stock {code}: {text}\nours  {our_code}: {our_text}")
            continue
        if code != our_code or (graph not in ANY_TEXT and broken_text(text) != broken_text(our_text)):
            report(f"broken graphs: {name}", f"stock {code}: {broken_text(text)}\nours  {our_code}: {broken_text(our_text)}")
    report("broken graphs", None, f"{len(stock)} answers")


def cost_graphs():
    """RunMetadata.cost_graph of sessions that build a cost model"""
    compare_each("cost graphs", *both(lambda c: c.run("cost_graphs")))


def debugger():
    """tensor dumps for TensorFlow's debugger"""
    compare_each("debugger", *both(lambda c: c.run("debugger")))


def loops():
    """loops and branches over several tasks"""
    compare_each("loops", *both(lambda c: c.run("loops")))


def gradients():
    """gradients that the server derives for functions without a gradient function"""
    compare_each("gradients", *both(lambda c: c.run("gradients")))


def tied_loops():
    """loops tied by control edges and by state, For over functions, variants"""
    compare_each("tied loops", *both(lambda c: c.run("tied_loops") | c.run("variants")))


def prints():
    """Print, PrintV2 and Assert: texts in files, in errors and in the task's output"""
    def run(cluster):
        answer = cluster.run("prints")
        log = (cluster.folder / "worker0.log").read_bytes().decode("latin-1")
        log = re.sub(r"\d\d:\d\d:\d\d\.\d+Z .*\n", "", log)  # our log lines about other events
        return answer, log[log.index("<<\n"):log.index(">>\n")].splitlines()

    close(*both(run, ps=1, worker=1))


def mixed():
    """loops on clusters in which one task is of the other kind of server"""
    stock = None
    for name, odd in (("stock", None), ("stock", ("ps", 0)), ("muster", ("ps", 0)), ("muster", ("worker", 1))):
        with Cluster(name, f"{folder}/mixed-{name}-{odd and odd[0]}", odd=odd) as cluster:
            answers = cluster.wait_ready().run("loops")
        stock = stock or answers
        if odd:
            compare_each(f"{name}, but for {odd[0]} {odd[1]}", stock, answers)


def servers():
    """the interface of tf.train.Server"""
    def run(job):
        return json.loads(job.run(PROGRAMS["own_servers"]).strip().splitlines()[-1])
    compare_each("servers", *with_each(run, folder))


def python_functions():
    """Python functions in a graph: py_func, py_function, from_generator"""
    def run(job):
        return json.loads(job.run(PROGRAMS["python_functions"]).strip().splitlines()[-1])
    compare_each("Python functions", *with_each(run, folder))


def several_cpus():
    """several CPU devices per task"""
    def run(job):
        return json.loads(job.run(PROGRAMS["several_cpus"]).strip().splitlines()[-1])
    compare_each("several CPUs", *with_each(run, folder))


def cluster_specs():
    """sessions that name jobs and tasks for servers with other names"""
    def run(job):
        return json.loads(job.run(PROGRAMS["cluster_specs"]).strip().splitlines()[-1])
    compare_each("cluster specs", *with_each(run, folder))


def collectives():
    """reduce, gather and broadcast between the sessions of two workers"""
    def run(job):
        return json.loads(job.run(PROGRAMS["collectives"]).strip().splitlines()[-1])
    compare_each("collectives", *with_each(run, folder))


def joins():
    """join() does not return in a ps whose server ends"""
    with Job("muster", f"{folder}/joins") as job:
        said = job.run(PROGRAMS["joins"])
    if said != "joins\n":
        raise Different(f"the ps says {said!r}")


def forks():
    """a server ends with its program, even if a fork of the program lives on"""
    with Job("muster", f"{folder}/forks") as job:
        task = job.start(PROGRAMS["forks"])
        job.wait_for("end of the server", lambda: job.said(task) == "the server has ended\n")


def older_python():
    """A server and a Python function with TensorFlow 1.4 and Python 3.6"""
    with Job("muster", f"{folder}/older_python") as job:
        said = job.run(PROGRAMS["older_python"])
    if said != "7\n":
        raise Different(f"the trainer says {said!r}")


def leaves_open():
    """A session that is still open when the program ends"""
    with Job("muster", f"{folder}/leaves_open") as job:
        said = job.run(PROGRAMS["leaves_open"], seconds=60)
    if said != "7\n":
        raise Different(f"the trainer says {said!r}")


def trainers_for_1():
    """TensorFlow 1 names under any form of `import tensorflow`; otherwise the error mentions --tf1"""
    with Job("muster", f"{folder}/trainers_for_1") as job:
        def write(name, text):
            path = job.folder / name
            path.write_text(text)
            return path
        for line in ("import os, tensorflow as tf", "import tensorflow as tf, sys", "import os; import tensorflow"):
            name = "tf" if " as tf" in line else "tensorflow"
            said = job.run(write("trainer.py", f"{line}\nprint({name}.Session(graph={name}.Graph()).run is None)\n"))
            if said != "False\n":
                raise Different(f"{line}: the trainer says {said!r}")
        write("model.py", "import tensorflow as tf\nx = tf.placeholder(tf.float32)\n")
        task = job.start(write("main.py", "import model\n"))
        if task.wait(PATIENCE) != 1 or "python -m muster --tf1" not in job.said(task, "err").splitlines()[-1]:
            raise Different(f"a trainer of several files ended with {task.returncode}: {job.said(task, 'err')}")


CASES = [sessions, lifetimes, raw, broken_graphs, cost_graphs, debugger, loops, gradients, tied_loops, prints, mixed, servers, python_functions, several_cpus, cluster_specs, collectives, joins, forks, older_python, leaves_open, trainers_for_1]
