/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A plugin of QEMU that records paths of a guest with one CPU. A path has the addresses of all
 * instructions that the kernel executes from one entry to the next return to user space. paths.rs
 * builds the plugin and reads its output.
 *
 * The plugin has no effect on the guest: its clock counts instructions.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The part of QEMU's interface that is used here; Debian has no package with its header. */
typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void (*tb_translated)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*executed)(unsigned int cpu, void *data);
enum { NO_REGISTERS };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, tb_translated callback);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, executed callback, int flags, void *data);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, executed callback, int flags, void *data);

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = PLUGIN_VERSION;

/* A longer path is not recorded: the guest does other work for a while. */
#define LONGEST (1 << 17)

static uint64_t entry, through, skip, count;
static FILE *output;

static uint64_t path[LONGEST + 1];
static size_t length;
static bool in_user, recording, fits;

static void write_path(void)
{
	path[length++] = 0;
	if (fwrite(path, sizeof(path[0]), length, output) != length || fflush(output)) {
		perror("paths: cannot write");
		abort();
	}
}

static void user_executed(unsigned int cpu, void *data)
{
	in_user = true;
	if (!recording)
		return;
	recording = false;
	if (!fits || !count)
		return;
	if (skip) {
		skip--;
		return;
	}
	count--;
	write_path();
}

static void kernel_executed(unsigned int cpu, void *data)
{
	uint64_t address = (uintptr_t)data;

	/* An entry from inside the kernel belongs to the path that it interrupts. */
	if (in_user && address == entry) {
		recording = true;
		fits = false;
		length = 0;
	}
	in_user = false;
	if (!recording)
		return;
	fits |= address == through;
	if (length < LONGEST)
		path[length++] = address;
	else
		recording = false;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t i, n = qemu_plugin_tb_n_insns(tb);

	if (!(qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0)) >> 63)) {
		qemu_plugin_register_vcpu_tb_exec_cb(tb, user_executed, NO_REGISTERS, NULL);
		return;
	}
	for (i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		void *address = (void *)(uintptr_t)qemu_plugin_insn_vaddr(insn);

		qemu_plugin_register_vcpu_insn_exec_cb(insn, kernel_executed, NO_REGISTERS, address);
	}
}

static const char *argument(int argc, char **argv, const char *name)
{
	size_t n = strlen(name);
	int i;

	for (i = 0; i < argc; i++) {
		if (!strncmp(argv[i], name, n) && argv[i][n] == '=')
			return argv[i] + n + 1;
	}
	fprintf(stderr, "paths: no argument %s\n", name);
	exit(1);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	entry = strtoull(argument(argc, argv, "entry"), NULL, 0);
	through = strtoull(argument(argc, argv, "through"), NULL, 0);
	skip = strtoull(argument(argc, argv, "skip"), NULL, 0);
	count = strtoull(argument(argc, argv, "count"), NULL, 0);
	output = fopen(argument(argc, argv, "output"), "wb");
	if (!output) {
		perror("paths: cannot create the output");
		return 1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
