#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""A task in Python: monitors the load of the machine. It has no hard deadline, but a place in the timetable.

    before ready()      imports, files, memory; the garbage collector ignores objects that exist
    in a job            no imports and little garbage: the collector is off
    after the loop      reports
"""

import os
import sys

import macrotick


def main():
    task = macrotick.Task("monitor")
    load = os.open("/proc/loadavg", os.O_RDONLY)
    jobs, running, lateness = 0, 0, 0
    try:
        macrotick.settle()
    except OSError as error:
        print("monitor: memory is not locked:", error.strerror, file=sys.stderr)
    task.ready()
    for job in task.jobs():
        # "0.20 0.18 0.12 1/80 11206": the number before the slash counts running processes
        running = max(running, int(os.pread(load, 64, 0).split()[3].partition(b"/")[0]))
        lateness = max(lateness, job.lateness_ns)
        jobs += 1
    task.leave()
    print(f"monitor: {jobs} jobs, at most {running} processes ran, at most {lateness} ns late")


if __name__ == "__main__":
    main()
