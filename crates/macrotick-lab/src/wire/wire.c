/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A plugin of QEMU that stops a guest at each meeting with another one, in the middle of an
 * instruction. The guest waits until the host lets it continue. Its clock counts instructions, so
 * it stands still during the stop. mod.rs is the host's side, port.rs the guest's.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The part of QEMU's interface that is used here; Debian has no package with its header. */
typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
typedef void (*tb_translated)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*accessed)(unsigned int cpu, uint32_t info, uint64_t address, void *data);
enum { NO_REGISTERS };
enum { WRITES = 2 };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, tb_translated callback);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, accessed callback, int flags, int kind,
				      void *data);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(uint32_t info, uint64_t address);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *address);
#if INSTRUCTIONS_ARE_COPIED
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *bytes, size_t length);
#else
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
#endif

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = PLUGIN_VERSION;

/* movq $0x6b636974, (%rdi): the instruction that port.rs executes at a meeting. */
static const unsigned char meeting[] = { 0x48, 0xc7, 0x07, 0x74, 0x69, 0x63, 0x6b };

static int host;

static void stop(unsigned int cpu, uint32_t info, uint64_t address, void *data)
{
	uint64_t page = qemu_plugin_hwaddr_phys_addr(qemu_plugin_get_hwaddr(info, address));
	char go;

	if (write(host, &page, sizeof(page)) != sizeof(page) || read(host, &go, 1) != 1) {
		fprintf(stderr, "wire: the host has gone\n");
		_exit(1);
	}
}

static int is_meeting(const struct qemu_plugin_insn *insn)
{
	unsigned char bytes[sizeof(meeting)];

	if (qemu_plugin_insn_size(insn) != sizeof(meeting))
		return 0;
#if INSTRUCTIONS_ARE_COPIED
	qemu_plugin_insn_data(insn, bytes, sizeof(bytes));
#else
	memcpy(bytes, qemu_plugin_insn_data(insn), sizeof(bytes));
#endif
	return !memcmp(bytes, meeting, sizeof(meeting));
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t i, n = qemu_plugin_tb_n_insns(tb);

	for (i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		if (is_meeting(insn))
			qemu_plugin_register_vcpu_mem_cb(insn, stop, NO_REGISTERS, WRITES, NULL);
	}
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	static const char name[] = "socket=";
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (argc != 1 || strncmp(argv[0], name, sizeof(name) - 1)) {
		fprintf(stderr, "wire: no argument socket\n");
		return 1;
	}
	strncpy(address.sun_path, argv[0] + sizeof(name) - 1, sizeof(address.sun_path) - 1);
	host = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (host < 0 || connect(host, (struct sockaddr *)&address, sizeof(address))) {
		perror("wire: cannot reach the host");
		return 1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
