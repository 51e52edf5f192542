// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * frames DEVICE PORT CYCLE_NS [START_NS]: prints where in the cycle the UDP
 * datagrams to PORT arrive at DEVICE. The kernel stamps them. The first cycle
 * begins at START_NS of CLOCK_MONOTONIC, or at 0.
 */
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define NS 1000000000LL
/* Frames between two lines. */
#define LINE 128

static int64_t now(clockid_t clock)
{
	struct timespec at;

	clock_gettime(clock, &at);
	return at.tv_sec * NS + at.tv_nsec;
}

/* CLOCK_REALTIME minus CLOCK_MONOTONIC. */
static int64_t offset(void)
{
	int64_t before = now(CLOCK_MONOTONIC), real = now(CLOCK_REALTIME), after = now(CLOCK_MONOTONIC);

	return real - (before + after) / 2;
}

static int open_socket(const char *device, int port)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 5),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 23),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 3),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 36),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 256),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(*code), code };
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int on = 1, fd = socket(AF_PACKET, SOCK_RAW, 0);

	at.sll_ifindex = if_nametoindex(device);
	if (fd < 0 || !at.sll_ifindex || setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ||
	    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) || bind(fd, (struct sockaddr *)&at, sizeof(at))) {
		perror(device);
		exit(1);
	}
	return fd;
}

/* Returns the kernel's time stamp of the next frame, on CLOCK_REALTIME. */
static int64_t next(int fd)
{
	char frame[256], control[256];
	struct iovec part = { frame, sizeof(frame) };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
	};
	struct cmsghdr *found;
	struct timespec at;

	if (recvmsg(fd, &message, 0) < 0)
		exit(1);
	for (found = CMSG_FIRSTHDR(&message); found; found = CMSG_NXTHDR(&message, found)) {
		if (found->cmsg_level != SOL_SOCKET || found->cmsg_type != SCM_TIMESTAMPNS)
			continue;
		memcpy(&at, CMSG_DATA(found), sizeof(at));
		return at.tv_sec * NS + at.tv_nsec;
	}
	exit(1);
}

int main(int argc, char **argv)
{
	int64_t cycle = argc >= 4 ? atoll(argv[3]) : 0, start = argc == 5 ? atoll(argv[4]) : 0;
	int64_t least = INT64_MAX, most = -1, apart = offset();
	long count = 0;
	int fd;

	if (cycle <= 0)
		return 2;
	fd = open_socket(argv[1], atoi(argv[2]));
	for (;;) {
		int64_t phase = (next(fd) - apart - start) % cycle;

		least = phase < least ? phase : least;
		most = phase > most ? phase : most;
		if (++count % LINE)
			continue;
		printf("frames %ld from %lld to %lld\n", count, (long long)least, (long long)most);
		fflush(stdout);
	}
}
