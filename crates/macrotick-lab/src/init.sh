#!/bin/busybox sh
# The lab's first program: mounts the file systems that programs expect, then becomes the agent.
export PATH=/sbin:/usr/sbin:/bin:/usr/bin HOME=/root
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
busybox mkdir -p /dev/pts /dev/shm /dev/mqueue
busybox mount -t devpts pts /dev/pts
busybox mount -t tmpfs shm /dev/shm
busybox mount -t mqueue mqueue /dev/mqueue
busybox mount -t tmpfs tmp /tmp
busybox mount -t cgroup2 cgroup /sys/fs/cgroup
busybox mount -t debugfs debug /sys/kernel/debug
busybox mount -t tracefs trace /sys/kernel/tracing
/sbin/ip link set lo up
exec /bin/macrotick guest
