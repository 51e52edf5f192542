/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Macrotick: the express path of a task.
 *
 * A task can exchange Ethernet frames with a device without the network stack,
 * through an AF_XDP socket:
 *
 *	struct macrotick_express express;
 *	unsigned char frame[MACROTICK_EXPRESS_FRAME];
 *	int length;
 *
 *	if (macrotick_express_open(&express, "eth0", 0, 7600, MACROTICK_EXPRESS_SKB) < 0)
 *		complain(express.failed);
 *	...
 *	while (macrotick_wait(&job) == 0) {
 *		length = macrotick_express_receive(&express, frame, sizeof(frame));
 *		if (length > 0)
 *			macrotick_express_send(&express, frame, answer(frame, length));
 *	}
 *	macrotick_express_close(&express);
 *
 * Open it before macrotick_ready(): opening allocates and locks memory. Receive
 * and send never block and allocate nothing. Wait with poll(2) for input on
 * express.socket, or take in each window what is there.
 *
 * A program on the device redirects UDP over IPv4 to one port, and passes all
 * other frames to the stack. These include frames with a VLAN tag, with IPv4
 * options, and fragments. The kernel removes the program when the process ends,
 * also after SIGKILL.
 *
 * Frames of this path pass no queueing discipline, and therefore no gate. Send
 * in a window that the plan has for it.
 *
 * It needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF, and a kernel with
 * CONFIG_XDP_SOCKETS and CONFIG_BPF_SYSCALL. Header-only; C11 and C++11. Every
 * call returns a negative errno value on failure.
 */
#ifndef MACROTICK_EXPRESS_H
#define MACROTICK_EXPRESS_H

#include <macrotick.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <sys/socket.h>

#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Frames that can wait for the task, and as many that can wait for the device; a power of two. */
#define MACROTICK_EXPRESS_FRAMES	512U
/* The room for a frame, in bytes; a frame itself can be 1792 bytes long. */
#define MACROTICK_EXPRESS_FRAME		2048U
#define MACROTICK_EXPRESS_MOST		1792U
/* The receive queues that a device can have for this path. */
#define MACROTICK_EXPRESS_QUEUES	64U

/* The mode: any device (skb), or within the driver (native), which is faster. */
#define MACROTICK_EXPRESS_SKB		1U
#define MACROTICK_EXPRESS_NATIVE	2U

#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef SOL_XDP
#define SOL_XDP 283
#endif

/* A ring that this process shares with the kernel. */
struct macrotick_ring {
	uint32_t *producer;
	uint32_t *consumer;
	uint32_t *flags;
	void *entries;
	void *map;
	size_t size;		/* of the map, in bytes */
};

struct macrotick_express {
	int socket;		/* for poll(2) */
	int queues;		/* map from a receive queue to this socket */
	int program;
	int link;		/* keeps the program at the device */
	uint32_t device;	/* index of the interface */
	uint32_t zero_copy;	/* 1: the device reads and writes the frames itself */
	const char *failed;	/* after a failed open: what failed, and the remedy */
	unsigned char *frames;	/* first those to receive, then those to send */
	uint32_t nr_free;	/* entries of `free` that are valid */
	uint32_t free[MACROTICK_EXPRESS_FRAMES];	/* frames to send that nobody uses */
	struct macrotick_ring fill;
	struct macrotick_ring completion;
	struct macrotick_ring in;
	struct macrotick_ring out;
};

#define MACROTICK_EXPRESS_MASK_	(MACROTICK_EXPRESS_FRAMES - 1)
#define MACROTICK_EXPRESS_SIZE_	((size_t)2 * MACROTICK_EXPRESS_FRAMES * MACROTICK_EXPRESS_FRAME)

static inline int macrotick_bpf_(int command, union bpf_attr *attr)
{
	long result = syscall(SYS_bpf, command, attr, sizeof(*attr));

	return result < 0 ? -errno : (int)result;
}

static inline struct bpf_insn macrotick_insn_(int code, unsigned int to, unsigned int from, int offset, uint32_t value)
{
	struct bpf_insn insn;

	memset(&insn, 0, sizeof(insn));
	insn.code = (uint8_t)code;
	insn.dst_reg = to & 0xfU;
	insn.src_reg = from & 0xfU;
	insn.off = (int16_t)offset;
	insn.imm = (int32_t)value;
	return insn;
}

/* The number of instructions, and the first of the last two: return XDP_PASS. */
#define MACROTICK_REDIRECT_LEN_		25
#define MACROTICK_REDIRECT_PASS_	23

/*
 * Writes the program. UDP over IPv4 to `port` goes to the socket of its receive
 * queue. Other frames go to the stack, and so do frames of a queue without a
 * socket. Constants are in network byte order, as the frame's fields are.
 */
static inline void macrotick_redirect_(struct bpf_insn *insn, int queues, uint16_t port)
{
	const int load4 = BPF_LDX | BPF_MEM | BPF_W, load2 = BPF_LDX | BPF_MEM | BPF_H;
	const int load1 = BPF_LDX | BPF_MEM | BPF_B, differs = BPF_JMP | BPF_JNE | BPF_K;
	const int set = BPF_ALU64 | BPF_MOV | BPF_K, copy = BPF_ALU64 | BPF_MOV | BPF_X;
	int at = 0;

#define MACROTICK_PUT_(code, to, from, offset, value) \
	(insn[at] = macrotick_insn_(code, to, from, offset, value), at++)
#define MACROTICK_PASS_UNLESS_(reg, value) \
	MACROTICK_PUT_(differs, reg, 0, MACROTICK_REDIRECT_PASS_ - at - 1, value)

	MACROTICK_PUT_(copy, 6, 1, 0, 0);	/* the context */
	MACROTICK_PUT_(load4, 2, 6, 0, 0);	/* the frame */
	MACROTICK_PUT_(load4, 3, 6, 4, 0);	/* its end */
	MACROTICK_PUT_(copy, 4, 2, 0, 0);
	MACROTICK_PUT_(BPF_ALU64 | BPF_ADD | BPF_K, 4, 0, 0, 42);	/* Ethernet, IPv4, UDP */
	MACROTICK_PUT_(BPF_JMP | BPF_JGT | BPF_X, 4, 3, MACROTICK_REDIRECT_PASS_ - at - 1, 0);
	MACROTICK_PUT_(load2, 5, 2, 12, 0);
	MACROTICK_PASS_UNLESS_(5, htons(0x0800));	/* IPv4 */
	MACROTICK_PUT_(load1, 5, 2, 14, 0);
	MACROTICK_PASS_UNLESS_(5, 0x45);		/* without options */
	MACROTICK_PUT_(load1, 5, 2, 23, 0);
	MACROTICK_PASS_UNLESS_(5, 17);			/* UDP */
	MACROTICK_PUT_(load2, 5, 2, 20, 0);
	MACROTICK_PUT_(BPF_ALU64 | BPF_AND | BPF_K, 5, 0, 0, htons(0x3fff));
	MACROTICK_PASS_UNLESS_(5, 0);			/* no fragment */
	MACROTICK_PUT_(load2, 5, 2, 36, 0);
	MACROTICK_PASS_UNLESS_(5, htons(port));
	MACROTICK_PUT_(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, (uint32_t)queues);
	MACROTICK_PUT_(0, 0, 0, 0, 0);		/* the upper half of the constant */
	MACROTICK_PUT_(load4, 2, 6, 16, 0);	/* the receive queue */
	MACROTICK_PUT_(set, 3, 0, 0, XDP_PASS);	/* the result if it has no socket */
	MACROTICK_PUT_(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map);
	MACROTICK_PUT_(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	MACROTICK_PUT_(set, 0, 0, 0, XDP_PASS);
	MACROTICK_PUT_(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
#undef MACROTICK_PUT_
#undef MACROTICK_PASS_UNLESS_
}

static inline int macrotick_ring_map_(struct macrotick_express *express, struct macrotick_ring *ring,
				      const struct xdp_ring_offset *offset, size_t entry, off_t at)
{
	size_t size = (size_t)offset->desc + MACROTICK_EXPRESS_FRAMES * entry;
	void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, express->socket, at);

	if (map == MAP_FAILED)
		return -errno;
	ring->map = map;
	ring->size = size;
	ring->producer = (uint32_t *)(void *)((char *)map + offset->producer);
	ring->consumer = (uint32_t *)(void *)((char *)map + offset->consumer);
	ring->flags = (uint32_t *)(void *)((char *)map + offset->flags);
	ring->entries = (char *)map + offset->desc;
	return 0;
}

static inline int macrotick_option_(struct macrotick_express *express, int option, const void *value, size_t size)
{
	return setsockopt(express->socket, SOL_XDP, option, value, (socklen_t)size) < 0 ? -errno : 0;
}

/* Makes the memory of the frames and the four rings. */
static inline int macrotick_express_memory_(struct macrotick_express *express)
{
	const uint32_t entries = MACROTICK_EXPRESS_FRAMES;
	static const int options[] = { XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING, XDP_RX_RING, XDP_TX_RING };
	struct xdp_mmap_offsets offsets;
	socklen_t size = sizeof(offsets);
	struct xdp_umem_reg memory;
	size_t i;
	int err;

	void *frames = mmap(NULL, MACROTICK_EXPRESS_SIZE_, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (frames == MAP_FAILED)
		return -errno;
	express->frames = (unsigned char *)frames;
	memset(&memory, 0, sizeof(memory));
	memory.addr = (uint64_t)(uintptr_t)frames;
	memory.len = MACROTICK_EXPRESS_SIZE_;
	memory.chunk_size = MACROTICK_EXPRESS_FRAME;
	err = macrotick_option_(express, XDP_UMEM_REG, &memory, sizeof(memory));
	for (i = 0; err == 0 && i < sizeof(options) / sizeof(options[0]); i++)
		err = macrotick_option_(express, options[i], &entries, sizeof(entries));
	if (err == 0 && getsockopt(express->socket, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &size) < 0)
		err = -errno;
	if (err == 0)
		err = macrotick_ring_map_(express, &express->fill, &offsets.fr, sizeof(uint64_t),
					  (off_t)XDP_UMEM_PGOFF_FILL_RING);
	if (err == 0)
		err = macrotick_ring_map_(express, &express->completion, &offsets.cr, sizeof(uint64_t),
					  (off_t)XDP_UMEM_PGOFF_COMPLETION_RING);
	if (err == 0)
		err = macrotick_ring_map_(express, &express->in, &offsets.rx, sizeof(struct xdp_desc),
					  (off_t)XDP_PGOFF_RX_RING);
	if (err == 0)
		err = macrotick_ring_map_(express, &express->out, &offsets.tx, sizeof(struct xdp_desc),
					  (off_t)XDP_PGOFF_TX_RING);
	return err;
}

/* Gives the first half of the frames to the kernel, and keeps the other half for what the task sends. */
static inline void macrotick_express_share_(struct macrotick_express *express)
{
	uint64_t *fill = (uint64_t *)express->fill.entries;
	uint32_t i;

	for (i = 0; i < MACROTICK_EXPRESS_FRAMES; i++) {
		fill[i] = (uint64_t)i * MACROTICK_EXPRESS_FRAME;
		express->free[i] = MACROTICK_EXPRESS_FRAMES + i;
	}
	express->nr_free = MACROTICK_EXPRESS_FRAMES;
	__atomic_store_n(express->fill.producer, MACROTICK_EXPRESS_FRAMES, __ATOMIC_RELEASE);
}

static inline int macrotick_express_bind_(struct macrotick_express *express, uint32_t queue, uint32_t mode)
{
	struct sockaddr_xdp address;
	const struct timespec pause = { 0, 10000000 };
	struct xdp_options options;
	socklen_t size = sizeof(options);
	int tries;

	memset(&address, 0, sizeof(address));
	address.sxdp_family = AF_XDP;
	address.sxdp_ifindex = express->device;
	address.sxdp_queue_id = queue;
	/* In the driver, the kernel takes zero copy if the device has it. */
	address.sxdp_flags = (uint16_t)(XDP_USE_NEED_WAKEUP | (mode == MACROTICK_EXPRESS_SKB ? XDP_COPY : 0));
	/* The kernel frees the queue of a socket that was just closed a little later: wait up to a second. */
	for (tries = 100; bind(express->socket, (const struct sockaddr *)(const void *)&address, sizeof(address)) < 0;
	     tries--) {
		if (errno != EBUSY || !tries)
			return -errno;
		nanosleep(&pause, NULL);
	}
	if (getsockopt(express->socket, SOL_XDP, XDP_OPTIONS, &options, &size) == 0)
		express->zero_copy = options.flags & XDP_OPTIONS_ZEROCOPY ? 1 : 0;
	return 0;
}

/* Makes the map of sockets, with this one at its queue. */
static inline int macrotick_express_queues_(struct macrotick_express *express, uint32_t queue)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_XSKMAP;
	attr.key_size = sizeof(uint32_t);
	attr.value_size = sizeof(uint32_t);
	attr.max_entries = MACROTICK_EXPRESS_QUEUES;
	express->queues = macrotick_bpf_(BPF_MAP_CREATE, &attr);
	if (express->queues < 0)
		return express->queues;
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)express->queues;
	attr.key = (uint64_t)(uintptr_t)&queue;
	attr.value = (uint64_t)(uintptr_t)&express->socket;
	return macrotick_bpf_(BPF_MAP_UPDATE_ELEM, &attr);
}

static inline int macrotick_express_program_(struct macrotick_express *express, uint16_t port)
{
	struct bpf_insn insn[MACROTICK_REDIRECT_LEN_];
	union bpf_attr attr;

	macrotick_redirect_(insn, express->queues, port);
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_XDP;
	attr.insn_cnt = MACROTICK_REDIRECT_LEN_;
	attr.insns = (uint64_t)(uintptr_t)insn;
	attr.license = (uint64_t)(uintptr_t)"MIT";
	express->program = macrotick_bpf_(BPF_PROG_LOAD, &attr);
	return express->program < 0 ? express->program : 0;
}

/* A link, and no attached program: the kernel removes it with the last descriptor. */
static inline int macrotick_express_link_(struct macrotick_express *express, uint32_t mode)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = (uint32_t)express->program;
	attr.link_create.target_ifindex = express->device;
	attr.link_create.attach_type = BPF_XDP;
	attr.link_create.flags = mode == MACROTICK_EXPRESS_SKB ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE;
	express->link = macrotick_bpf_(BPF_LINK_CREATE, &attr);
	return express->link < 0 ? express->link : 0;
}

static inline void macrotick_ring_unmap_(struct macrotick_ring *ring)
{
	if (ring->map)
		munmap(ring->map, ring->size);
	ring->map = NULL;
}

/* Closes the path: the stack gets the frames to its port again. */
MACROTICK_API void macrotick_express_close(struct macrotick_express *express)
{
	const int descriptors[] = { express->link, express->program, express->queues, express->socket };
	size_t i;

	for (i = 0; i < sizeof(descriptors) / sizeof(descriptors[0]); i++)
		if (descriptors[i] >= 0)
			close(descriptors[i]);
	macrotick_ring_unmap_(&express->fill);
	macrotick_ring_unmap_(&express->completion);
	macrotick_ring_unmap_(&express->in);
	macrotick_ring_unmap_(&express->out);
	if (express->frames)
		munmap(express->frames, MACROTICK_EXPRESS_SIZE_);
	express->frames = NULL;
	express->link = express->program = express->queues = express->socket = -1;
}

static inline int macrotick_express_steps_(struct macrotick_express *express, uint32_t queue, uint16_t port,
					   uint32_t mode)
{
	int err;

	express->failed = "cannot open an AF_XDP socket: it needs CAP_NET_RAW and CONFIG_XDP_SOCKETS";
	express->socket = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (express->socket < 0)
		return -errno;
	express->failed = "cannot share 2 MiB of memory with the kernel: raise RLIMIT_MEMLOCK";
	err = macrotick_express_memory_(express);
	if (err < 0)
		return err;
	macrotick_express_share_(express);
	express->failed = "cannot bind to the receive queue: it must exist, be free, and its device be up; "
			  "with native its driver needs AF_XDP";
	err = macrotick_express_bind_(express, queue, mode);
	if (err < 0)
		return err;
	express->failed = "cannot make a map of sockets: it needs CAP_BPF and CONFIG_BPF_SYSCALL";
	err = macrotick_express_queues_(express, queue);
	if (err < 0)
		return err;
	express->failed = "cannot load the redirecting program: it needs CAP_NET_ADMIN and CAP_BPF";
	err = macrotick_express_program_(express, port);
	if (err < 0)
		return err;
	express->failed = "cannot put the program at the device: no other program may be there; with native its "
			  "driver needs XDP, and skb works with every driver";
	err = macrotick_express_link_(express, mode);
	if (err == 0)
		express->failed = NULL;
	return err;
}

/*
 * Opens the path for UDP over IPv4 to `port` that arrives on a receive queue of
 * an interface. A device with several queues chooses one by its own rules.
 *
 *	EINVAL		A mode or queue that does not exist.
 *	others		`failed` says which step, and the remedy.
 */
MACROTICK_API int macrotick_express_open(struct macrotick_express *express, const char *interface, uint32_t queue,
					 uint16_t port, uint32_t mode)
{
	int err;

	memset(express, 0, sizeof(*express));
	express->link = express->program = express->queues = express->socket = -1;
	express->failed = "the mode is skb or native, and the receive queue is below 64";
	if ((mode != MACROTICK_EXPRESS_SKB && mode != MACROTICK_EXPRESS_NATIVE) || queue >= MACROTICK_EXPRESS_QUEUES)
		return -EINVAL;
	express->failed = "there is no such interface";
	express->device = if_nametoindex(interface);
	if (!express->device)
		return -errno;
	err = macrotick_express_steps_(express, queue, port, mode);
	if (err < 0)
		macrotick_express_close(express);
	return err;
}

/* Hands a received frame's memory back to the kernel. The ring has room: it holds all frames to receive. */
static inline void macrotick_express_refill_(struct macrotick_express *express, uint64_t at)
{
	uint32_t producer = *express->fill.producer;
	uint64_t *fill = (uint64_t *)express->fill.entries;

	fill[producer & MACROTICK_EXPRESS_MASK_] = at & ~(uint64_t)(MACROTICK_EXPRESS_FRAME - 1);
	__atomic_store_n(express->fill.producer, producer + 1, __ATOMIC_RELEASE);
}

/*
 * Receives a frame, Ethernet header included. Returns its length in bytes.
 *
 *	EAGAIN		There is none.
 *	EMSGSIZE	It was longer than `size`, and is lost.
 */
MACROTICK_API int macrotick_express_receive(struct macrotick_express *express, void *frame, uint32_t size)
{
	uint32_t consumer = *express->in.consumer;
	const struct xdp_desc *entries = (const struct xdp_desc *)express->in.entries;
	struct xdp_desc entry;

	if (__atomic_load_n(express->in.producer, __ATOMIC_ACQUIRE) == consumer) {
		/* With zero copy, the driver may have run out of frames and stopped. */
		if (__atomic_load_n(express->fill.flags, __ATOMIC_RELAXED) & XDP_RING_NEED_WAKEUP)
			(void)recvfrom(express->socket, NULL, 0, MSG_DONTWAIT, NULL, NULL);
		return -EAGAIN;
	}
	entry = entries[consumer & MACROTICK_EXPRESS_MASK_];
	if (entry.len <= size)
		memcpy(frame, express->frames + entry.addr, entry.len);
	__atomic_store_n(express->in.consumer, consumer + 1, __ATOMIC_RELEASE);
	macrotick_express_refill_(express, entry.addr);
	return entry.len <= size ? (int)entry.len : -EMSGSIZE;
}

/* Takes the frames back that the device has sent. */
static inline void macrotick_express_reclaim_(struct macrotick_express *express)
{
	uint32_t consumer = *express->completion.consumer;
	const uint64_t *entries = (const uint64_t *)express->completion.entries;
	uint32_t producer = __atomic_load_n(express->completion.producer, __ATOMIC_ACQUIRE);

	for (; consumer != producer; consumer++)
		express->free[express->nr_free++] =
			(uint32_t)(entries[consumer & MACROTICK_EXPRESS_MASK_] / MACROTICK_EXPRESS_FRAME);
	__atomic_store_n(express->completion.consumer, consumer, __ATOMIC_RELEASE);
}

/* Has the kernel send what is in the ring. A busy device sends it with the next frame. */
static inline int macrotick_express_kick_(struct macrotick_express *express)
{
	if (!(__atomic_load_n(express->out.flags, __ATOMIC_RELAXED) & XDP_RING_NEED_WAKEUP))
		return 0;
	if (sendto(express->socket, NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0)
		return 0;
	return errno == EAGAIN || errno == EBUSY || errno == ENOBUFS || errno == EINTR ? 0 : -errno;
}

/*
 * Sends a frame, Ethernet header included. It is copied.
 *
 *	EAGAIN		All frames are on their way. Send it again later.
 *	EMSGSIZE	It is empty, or longer than MACROTICK_EXPRESS_MOST.
 *	ENETDOWN	The device is down.
 */
MACROTICK_API int macrotick_express_send(struct macrotick_express *express, const void *frame, uint32_t length)
{
	uint32_t producer = *express->out.producer;
	struct xdp_desc *entry = (struct xdp_desc *)express->out.entries + (producer & MACROTICK_EXPRESS_MASK_);

	if (!length || length > MACROTICK_EXPRESS_MOST)
		return -EMSGSIZE;
	macrotick_express_reclaim_(express);
	if (!express->nr_free) {
		int err = macrotick_express_kick_(express);

		return err < 0 ? err : -EAGAIN;
	}
	entry->addr = (uint64_t)express->free[--express->nr_free] * MACROTICK_EXPRESS_FRAME;
	entry->len = length;
	entry->options = 0;
	memcpy(express->frames + entry->addr, frame, length);
	__atomic_store_n(express->out.producer, producer + 1, __ATOMIC_RELEASE);
	return macrotick_express_kick_(express);
}

#ifdef __cplusplus
}
#endif

#endif /* MACROTICK_EXPRESS_H */
