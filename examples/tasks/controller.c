/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A task for a real machine: a PI controller that holds the speed of a
 * (simulated) motor. It shows the right place for each kind of work:
 *
 *	before macrotick_ready()	everything that may block, fault or fail
 *	in a job			bounded computation, no allocation, no I/O
 *	after the loop			reports
 *
 * It joins as "controller", so it also runs without a runner, in a table that
 * is already installed.
 */
#include <macrotick.h>

#include <stdio.h>

#define SETPOINT	1500.0	/* revolutions per minute */

struct motor {
	double speed;		/* revolutions per minute */
	double inertia;		/* seconds to follow the input by 63 % */
};

struct controller {
	double kp, ki;
	double integral;
};

/* One step of the controller; dt in seconds. Returns the motor's input. */
static double control(struct controller *c, double measured, double dt)
{
	double error = SETPOINT - measured;

	c->integral += error * dt;
	return c->kp * error + c->ki * c->integral;
}

/* The motor follows its input as a first-order lag. */
static void simulate(struct motor *m, double input, double dt)
{
	m->speed += (input - m->speed) * dt / m->inertia;
}

int main(void)
{
	struct controller controller = { .kp = 2.0, .ki = 8.0, .integral = 0.0 };
	struct motor motor = { .speed = 0.0, .inertia = 0.25 };
	unsigned long jobs = 0, lost = 0;
	uint64_t previous = 0;
	struct macrotick_job job;
	int err;

	err = macrotick_join("controller");
	if (err < 0) {
		fprintf(stderr, "controller: cannot join: %s\n", strerror(-err));
		return 1;
	}
	/* A page fault in a job would cost more than the job. */
	if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
		perror("controller: memory is not locked");
	macrotick_ready();

	while ((err = macrotick_wait(&job)) == 0 || err == -EINTR) {
		if (err < 0)
			continue;
		/* Uses the table's times: the steps are equal even if the start jitters. */
		if (previous) {
			double dt = (double)(job.nominal_ns - previous) / 1e9;

			simulate(&motor, control(&controller, motor.speed, dt), dt);
		}
		previous = job.nominal_ns;
		lost += job.lost;
		jobs++;
	}
	macrotick_leave();
	printf("controller: %lu jobs, %lu lost, speed %.1f of %.1f rpm\n", jobs, lost, motor.speed, SETPOINT);
	return err == -ESHUTDOWN ? 0 : 1;
}
