#!/bin/sh
# The first program of the engines' image. Container engines cannot pivot away from the kernel's first file system. So
# it mounts the same file system a second time, as systemd's root.
PATH=/usr/sbin:/usr/bin
mount --bind / /mnt
cd /mnt
mount --move . /
exec chroot . /lib/systemd/systemd
