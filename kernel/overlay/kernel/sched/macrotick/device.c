// SPDX-License-Identifier: GPL-2.0-only
/*
 * Macrotick: /dev/macrotick.
 *
 * Every argument begins with its size; copy_struct_from_user() has the rules.
 */
#include <linux/capability.h>
#include <linux/miscdevice.h>
#include <linux/nospec.h>
#include <linux/pid.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/sched/task.h>

#include "internal.h"

/* Reads an argument of any version into the version of this kernel. */
static int fetch(void *arg, size_t ksize, size_t minimum, void __user *user)
{
	u32 size;

	if (get_user(size, (u32 __user *)user))
		return -EFAULT;
	if (size > PAGE_SIZE)
		return -E2BIG;
	if (size < minimum)
		return -EINVAL;
	return copy_struct_from_user(arg, ksize, user, size);
}

/* Writes back the part that the caller's version has. */
static int store(void __user *user, const void *arg, size_t ksize)
{
	u32 size = *(const u32 *)arg;

	return copy_to_user(user, arg, min_t(size_t, size, ksize)) ? -EFAULT : 0;
}

#define FETCH(arg, last, user)	fetch(&(arg), sizeof(arg), offsetofend(typeof(arg), last), user)
#define STORE(user, arg)	store(user, &(arg), sizeof(arg))

static int ioctl_install(void __user *user)
{
	struct macrotick_install arg;
	int err = FETCH(arg, error_reserved, user);

	if (err)
		return err;
	arg.error = arg.error_index = arg.error_other = arg.error_reserved = 0;
	arg.swap_ns = 0;
	/* Checks first that the result can be written back: otherwise nothing may change. */
	if (STORE(user, arg))
		return -EFAULT;
	err = mt_install(&arg);
	return STORE(user, arg) ? -EFAULT : err;
}

static int ioctl_start(void __user *user)
{
	struct macrotick_start arg;
	int err = FETCH(arg, epoch_ns, user);

	/* Checks first that the result can be written back: otherwise nothing may change. */
	err = err ?: STORE(user, arg);
	err = err ?: mt_start(&arg);
	return err ?: STORE(user, arg);
}

static void describe_window(struct macrotick_window *out, const struct macrotick_table *table,
			    const struct mt_window *w, unsigned int cpu)
{
	bool sync = w->flags & MACROTICK_WINDOW_SYNC;

	*out = (struct macrotick_window) {
		.offset_ns = w->offset,
		.length_ns = w->end - w->offset,
		.cpu = cpu,
		.entity = sync ? 0 : w->slot - table->slots,
		.flags = w->flags,
		.bound_ns = sync ? w->bound : 0,
	};
}

static int get_entities(const struct macrotick_table *table, u64 user)
{
	struct macrotick_entity __user *out = u64_to_user_ptr(user);
	unsigned int i;

	for (i = 0; i < table->nr_entities; i++) {
		struct macrotick_entity entity = { };

		strscpy_pad(entity.name, table->slots[i].entity->name);
		entity.flags = table->slots[i].flags;
		entity.max_misses = table->slots[i].max_misses;
		entity.slice_ns = table->slots[i].entity->slice;
		if (copy_to_user(&out[i], &entity, sizeof(entity)))
			return -EFAULT;
	}
	return 0;
}

static int get_windows(const struct macrotick_table *table, u64 user)
{
	struct macrotick_window __user *out = u64_to_user_ptr(user);
	unsigned int i, cpu = 0;

	for (i = 0; i < table->nr_windows; i++) {
		const struct mt_window *w = &table->windows[i];
		struct macrotick_window window;

		while (w >= table->schedules[cpu].windows + table->schedules[cpu].nr_windows)
			cpu++;
		describe_window(&window, table, w, cpu);
		if (copy_to_user(&out[i], &window, sizeof(window)))
			return -EFAULT;
	}
	return 0;
}

static int get_table(struct macrotick_get *arg, const struct macrotick_table *table)
{
	u32 entities = arg->nr_entities, windows = arg->nr_windows;
	int err = 0;

	if ((entities && entities < table->nr_entities) ||
	    (windows && windows < table->nr_windows))
		return -ENOSPC;
	if (entities)
		err = get_entities(table, arg->entities);
	if (windows && !err)
		err = get_windows(table, arg->windows);
	arg->state = arg->epoch_ns ? MACROTICK_STATE_RUNNING : MACROTICK_STATE_STOPPED;
	arg->clockid = table->follows ? CLOCK_TAI : CLOCK_MONOTONIC;
	arg->nr_entities = table->nr_entities;
	arg->nr_windows = table->nr_windows;
	arg->cycle_ns = table->cycle;
	arg->lead_ns = table->lead;
	return err;
}

static int ioctl_get(void __user *user)
{
	struct macrotick_table *table;
	struct macrotick_get arg;
	int err = FETCH(arg, windows, user);

	if (err)
		return err;
	if (arg.flags)
		return -EINVAL;
	arg.epoch_ns = arg.stretched_ns = arg.shrunk_ns = arg.corrections = 0;
	arg.offset_ns = arg.error_ns = 0;
	table = mt_installed_table();
	if (table) {
		if (READ_ONCE(table->epoch))
			mt_describe_grid(&arg, table);
		err = get_table(&arg, table);
		mt_table_put(table);
	} else {
		arg = (struct macrotick_get) { .size = arg.size };
	}
	return err ?: STORE(user, arg);
}

/*
 * Reads the counters without the lock of the entity's run queue: a caller must
 * not be able to delay that CPU. Each number is exact. All numbers belong to one
 * instant if that CPU is the caller's, or does not serve the entity meanwhile.
 */
static void get_stats_of(struct macrotick_entity_stats *arg, const struct macrotick_served *entity)
{
	guard(irqsave)();
	strscpy_pad(arg->name, entity->name);
	arg->cpu = READ_ONCE(entity->cpu);
	arg->nr_threads = READ_ONCE(entity->nr_threads);
	arg->activations = READ_ONCE(entity->activations);
	arg->completions = READ_ONCE(entity->completions);
	arg->misses = READ_ONCE(entity->misses);
	arg->lost = READ_ONCE(entity->lost);
	arg->skipped = READ_ONCE(entity->skipped);
	arg->preemptions = READ_ONCE(entity->preemptions);
	arg->runtime_ns = READ_ONCE(entity->runtime);
	arg->held_ns = READ_ONCE(entity->held);
	arg->late = READ_ONCE(entity->late);
	arg->late_max_ns = READ_ONCE(entity->late_max);
	arg->never_ran = READ_ONCE(entity->never_ran);
	arg->misses_in_row = READ_ONCE(entity->misses_in_row);
	arg->stopped = READ_ONCE(entity->stopped);
}

static int get_stats(struct macrotick_entity_stats *arg)
{
	struct macrotick_table *table = mt_installed_table();
	int err = 0;

	if (!table)
		return -ENOENT;
	if (arg->entity < table->nr_entities)
		get_stats_of(arg, table->slots[array_index_nospec(arg->entity,
								  table->nr_entities)].entity);
	else
		err = -ENOENT;
	mt_table_put(table);
	return err;
}

static int ioctl_stats(void __user *user)
{
	struct macrotick_entity_stats arg;
	int err = FETCH(arg, runtime_ns, user) ?: get_stats(&arg);

	return err ?: STORE(user, arg);
}

static int ioctl_notify(void __user *user)
{
	struct macrotick_notify arg;
	int err = FETCH(arg, eventfd, user);

	if (err)
		return err;
	return arg.flags ? -EINVAL : mt_notify(&arg);
}

/*
 * Returns the thread of a pidfd, with a reference; -1 is the caller.
 * pidfd_get_task() only knows the first threads of processes.
 */
static struct task_struct *get_thread(int pidfd)
{
	struct task_struct *p;
	unsigned int flags;
	struct pid *pid;

	if (pidfd == -1)
		return get_task_struct(current);
	pid = pidfd_get_pid(pidfd, &flags);
	if (IS_ERR(pid))
		return ERR_CAST(pid);
	p = get_pid_task(pid, PIDTYPE_PID);
	put_pid(pid);
	return p ?: ERR_PTR(-ESRCH);
}

static int ioctl_bind(void __user *user)
{
	struct macrotick_bind arg;
	struct task_struct *p;
	int err = FETCH(arg, name, user);

	if (err)
		return err;
	if (arg.flags || arg.reserved || strnlen(arg.name, sizeof(arg.name)) == sizeof(arg.name))
		return -EINVAL;
	p = get_thread(arg.pidfd);
	if (IS_ERR(p))
		return PTR_ERR(p);
	/*
	 * Binding changes the policy and the CPUs: security modules are asked
	 * as for these changes.
	 */
	err = security_task_setscheduler(p) ?: mt_bind(p, arg.name);
	put_task_struct(p);
	return err;
}

static int ioctl_unbind(void __user *user)
{
	struct macrotick_unbind arg;
	struct task_struct *p;
	int err = FETCH(arg, reserved, user);

	if (err)
		return err;
	if (arg.flags || arg.reserved)
		return -EINVAL;
	p = get_thread(arg.pidfd);
	if (IS_ERR(p))
		return PTR_ERR(p);
	err = security_task_setscheduler(p);
	if (!err) {
		mt_begin_control();
		scoped_guard(mt_control, &mt_control)
			err = mt_unbind(p);
		mt_end_control();
	}
	put_task_struct(p);
	return err;
}

/* Stores the output fields one by one: a copy of so few bytes would take time from the job. */
static int store_job(struct macrotick_wait __user *user, const struct macrotick_wait *arg)
{
	if (!user_write_access_begin(user, sizeof(*user)))
		return -EFAULT;
	unsafe_put_user(arg->job, &user->job, fault);
	unsafe_put_user(arg->nominal_ns, &user->nominal_ns, fault);
	unsafe_put_user(arg->lost, &user->lost, fault);
	user_write_access_end();
	return 0;
fault:
	user_write_access_end();
	return -EFAULT;
}

static int ioctl_wait(void __user *user)
{
	struct macrotick_wait arg;
	int err = FETCH(arg, lost, user);

	if (err)
		return err;
	if (arg.flags)
		return -EINVAL;
	err = mt_wait(&arg) ?: store_job(user, &arg);
	/* Last: only the return must lie between the nominal instant and the job. */
	if (likely(!err) && unlikely(READ_ONCE(current->macrotick.hold)))
		mt_hold();
	return err;
}

static int ioctl_record(struct file *file, void __user *user)
{
	struct macrotick_recorder arg;
	int err = FETCH(arg, nr_rings, user);

	/* Checks first that the result can be written back: otherwise nothing may change. */
	err = err ?: STORE(user, arg);
	err = err ?: mt_start_recorder(file, &arg);
	return err ?: STORE(user, arg);
}

static long macrotick_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;

	if (cmd == MACROTICK_IOC_WAIT)
		return ioctl_wait(user);
	if (cmd == MACROTICK_IOC_GET)
		return ioctl_get(user);
	if (cmd == MACROTICK_IOC_STATS)
		return ioctl_stats(user);
	if (cmd == MACROTICK_IOC_RECORD)
		return ioctl_record(file, user);
	if (!capable(CAP_SYS_NICE))
		return -EPERM;
	switch (cmd) {
	case MACROTICK_IOC_INSTALL:
		return ioctl_install(user);
	case MACROTICK_IOC_START:
		return ioctl_start(user);
	case MACROTICK_IOC_STOP:
		return mt_stop();
	case MACROTICK_IOC_REMOVE:
		return mt_remove();
	case MACROTICK_IOC_NOTIFY:
		return ioctl_notify(user);
	case MACROTICK_IOC_BIND:
		return ioctl_bind(user);
	case MACROTICK_IOC_UNBIND:
		return ioctl_unbind(user);
	}
	return -ENOTTY;
}

static int macrotick_mmap(struct file *file, struct vm_area_struct *vma)
{
	return mt_map_recorder(file, vma);
}

static int macrotick_release(struct inode *inode, struct file *file)
{
	mt_end_recorder(file);
	return 0;
}

static const struct file_operations macrotick_fops = {
	.owner		= THIS_MODULE,
	.unlocked_ioctl	= macrotick_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.mmap		= macrotick_mmap,
	.release	= macrotick_release,
	.llseek		= noop_llseek,
};

/* Any user may open it: a bound thread waits without privilege. */
static struct miscdevice macrotick_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "macrotick",
	.fops	= &macrotick_fops,
	.mode	= 0666,
};

static int __init macrotick_device_init(void)
{
	return misc_register(&macrotick_device);
}
device_initcall(macrotick_device_init);
