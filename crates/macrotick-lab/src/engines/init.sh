#!/bin/sh
# The first program of the engines' image: gives systemd a root that container engines can pivot away from, which they cannot
# from the kernel's first file system. It is the same file system, mounted a second time.
PATH=/usr/sbin:/usr/bin
mount --bind / /mnt
cd /mnt
mount --move . /
exec chroot . /lib/systemd/systemd
