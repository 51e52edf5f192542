# SPDX-License-Identifier: MIT OR Apache-2.0
"""A task in Python: include/macrotick.h through libmacrotick.so, in the folder of this file.

    task = macrotick.Task("monitor")
    ...                         # initialise: import, allocate, open
    macrotick.settle()
    task.ready()
    for job in task.jobs():
        ...                     # one job
    task.leave()

Times are whole nanoseconds of CLOCK_MONOTONIC. Only the thread that made the Task may use it. A process
has one task. Errors raise OSError with the errno that the header names.
"""

import ctypes
import errno
import gc
import os

_library = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "libmacrotick.so"))
_libc = ctypes.CDLL(None, use_errno=True)
_MCL_CURRENT, _MCL_FUTURE = 1, 2


class Job(ctypes.Structure):
    """A job: struct macrotick_job."""

    _fields_ = [
        ("number", ctypes.c_uint64),
        ("nominal_ns", ctypes.c_uint64),
        ("start_ns", ctypes.c_uint64),
        ("lost", ctypes.c_uint64),
    ]

    @property
    def lateness_ns(self):
        """The time from the nominal instant to the return of the wait, without the interpreter's time after it."""
        return self.start_ns - self.nominal_ns


class Stats(ctypes.Structure):
    """The kernel's counters of the task: struct macrotick_entity_stats of linux/macrotick.h."""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("entity", ctypes.c_uint32),
        ("name", ctypes.c_char * 32),
        ("cpu", ctypes.c_uint32),
        ("nr_threads", ctypes.c_uint32),
        ("activations", ctypes.c_uint64),
        ("completions", ctypes.c_uint64),
        ("misses", ctypes.c_uint64),
        ("lost", ctypes.c_uint64),
        ("skipped", ctypes.c_uint64),
        ("preemptions", ctypes.c_uint64),
        ("runtime_ns", ctypes.c_uint64),
        ("held_ns", ctypes.c_uint64),
        ("late", ctypes.c_uint64),
        ("late_max_ns", ctypes.c_uint64),
        ("never_ran", ctypes.c_uint64),
        ("misses_in_row", ctypes.c_uint32),
        ("stopped", ctypes.c_uint32),
    ]


_library.macrotick_join.argtypes = [ctypes.c_char_p]
_library.macrotick_wait.argtypes = [ctypes.POINTER(Job)]
_library.macrotick_stats.argtypes = [ctypes.POINTER(Stats)]


def _check(error):
    if error < 0:
        raise OSError(-error, os.strerror(-error))


def settle():
    """Locks the memory, excludes existing objects from garbage collection, and stops automatic collection.

    gc.collect() collects garbage among later objects. Raises OSError if memory may not be locked (RLIMIT_MEMLOCK)."""
    gc.collect()
    gc.freeze()
    gc.disable()
    if _libc.mlockall(_MCL_CURRENT | _MCL_FUTURE) < 0:
        _check(-ctypes.get_errno())


class Task:
    """The membership of this process's one task, from macrotick_join() to macrotick_leave()."""

    def __init__(self, name=None):
        """Makes the calling thread the task `name`; None takes the runner's name."""
        _check(_library.macrotick_join(None if name is None else os.fsencode(name)))

    def ready(self):
        """Reports that the task is initialised, and returns when the run begins."""
        error = _library.macrotick_ready()
        # A run that ends before it begins has no jobs: jobs() ends at once.
        if error != -errno.ESHUTDOWN:
            _check(error)

    def jobs(self):
        """Yields each job when it starts, and ends with the run. The object is the same each time, with new content.

        A job is complete when the program asks for the next one. After a handled signal, it waits again."""
        job = Job()
        reference = ctypes.byref(job)
        wait = _library.macrotick_wait
        while True:
            error = wait(reference)
            if error == 0:
                yield job
            elif error == -errno.ESHUTDOWN:
                return
            elif error != -errno.EINTR:
                _check(error)

    def stats(self):
        """Returns the kernel's counters. Fails with ENOTSUP if the backend is not kernel, with ENOENT after the run."""
        stats = Stats()
        _check(_library.macrotick_stats(ctypes.byref(stats)))
        return stats

    def leave(self):
        """Completes the running job and ends the membership."""
        _check(_library.macrotick_leave())
