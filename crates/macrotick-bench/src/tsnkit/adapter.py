"""tsnkit's generator, planners and simulator for the bench `tsnkit`. Reads one request from standard input, and prints
one answer; both are JSON. tsnkit itself prints to standard output, which goes to standard error here."""

import contextlib
import importlib
import json
import os
import sys
import time

with contextlib.redirect_stdout(sys.stderr):
    import networkx
    import numpy
    import pandas
    from tsnkit import core
    from tsnkit.data import dataset_spec
    from tsnkit.simulation import tas


def generate(folder, seed, topology, switches, streams, period, size, deadline):
    """Draws a network and its streams, and writes both as tsnkit's tables."""
    os.makedirs(folder, exist_ok=True)
    numpy.random.seed(seed)
    network = dataset_spec.TOPO_FUNC[topology](switches, num_queue=8, data_rate=1, header=f"{folder}/topo")
    graph = networkx.DiGraph(network)
    dataset_spec.generate_flowset(graph, size, period, deadline, streams, switches, switches, f"{folder}/task")
    links = pandas.read_csv(f"{folder}/topo.csv")
    tasks = pandas.read_csv(f"{folder}/task.csv")
    ends = [json.loads(text.replace("(", "[").replace(")", "]")) for text in links["link"]]
    receivers = [json.loads(text)[0] for text in tasks["dst"]]
    return {
        "links": [{"from": ends[i][0], "to": ends[i][1], "process": int(row.t_proc)} for i, row in links.iterrows()],
        "streams": [
            {
                "from": int(row.src),
                "to": receivers[i],
                "size": int(row["size"]),
                "period": int(row.period),
                "deadline": int(row.deadline),
            }
            for i, row in tasks.iterrows()
        ],
    }


def plan(folder, method):
    """Plans with a method of tsnkit, on one core. The time is that of its preparation and its search."""
    module = importlib.import_module(f"tsnkit.algorithms.{method}")
    planner = getattr(module, method)(1)
    begin = time.perf_counter()
    planner.init(f"{folder}/task.csv", f"{folder}/topo.csv")
    planner.prepare()
    found = planner.solve()
    seconds = time.perf_counter() - begin
    if found.result == core.Result.schedulable:
        planner.output().to_csv(method, f"{folder}/")
    return {"result": found.result.name, "seconds": seconds}


def write(folder, name, cycle, gates, routes, offsets):
    """Writes a plan as tsnkit's tables. Its frames use one queue on each link."""
    link = lambda one: str((one[0], one[1]))
    table = lambda rows, kind, columns: pandas.DataFrame(rows, columns=columns).to_csv(
        f"{folder}/{name}-{kind}.csv", index=False
    )
    entries = [[link(ends), 0, start, end, cycle] for ends, start, end in gates]
    table(entries, "GCL", ["link", "queue", "start", "end", "cycle"])
    hops = [(stream, link(ends)) for stream, route in enumerate(routes) for ends in route]
    table(hops, "ROUTE", ["stream", "link"])
    table([[stream, 0, offset] for stream, offset in enumerate(offsets)], "OFFSET", ["stream", "frame", "offset"])
    table([[stream, 0, ends, 0] for stream, ends in hops], "QUEUE", ["stream", "frame", "link", "queue"])
    return {}


def simulate(folder, name, turns):
    """Runs a plan in tsnkit's simulator for some hyperperiods. Returns the streams with a frame that is lost or late."""
    log = tas.simulation(f"{folder}/task.csv", f"{folder}/{name}", it=turns, draw_results=False, disable_pbar=True)
    tasks = pandas.read_csv(f"{folder}/task.csv")
    offsets = pandas.concat(pandas.read_csv(f"{folder}/{file}") for file in os.listdir(folder)
                            if file.startswith(name) and "OFFSET" in file)
    first = {int(row.stream): int(row.offset) for row in offsets.itertuples() if int(row.frame) == 0}
    end = int(numpy.lcm.reduce(list(tasks.period))) * turns
    wrong = []
    for stream, row in tasks.iterrows():
        sent = range(first[stream], end - int(row.deadline), int(row.period))
        arrived = log[stream][1]
        late = any(there - start > row.deadline for start, there in zip(sent, arrived))
        if late or len(arrived) < len(sent):
            wrong.append(int(stream))
    return {"wrong": wrong}


def main():
    request = json.load(sys.stdin)
    verb = {"generate": generate, "plan": plan, "write": write, "simulate": simulate}[request.pop("verb")]
    with contextlib.redirect_stdout(sys.stderr):
        answer = verb(**request)
    json.dump(answer, sys.stdout)


main()
