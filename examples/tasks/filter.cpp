// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A task in C++11: a Kalman filter that follows a position with constant speed, from (simulated) noisy measurements.
//
//	the constructor		joins; the destructor leaves, however the program's loop ends
//	in a job		no exceptions, no allocation: objects of a fixed size, made before the first job
#include <macrotick.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

namespace {

// The membership of this process's one task.
class Task {
public:
	explicit Task(const char *name)
	{
		const int err = macrotick_join(name);

		if (err < 0)
			throw std::runtime_error(std::string("cannot join: ") + std::strerror(-err));
	}

	~Task() { macrotick_leave(); }

	Task(const Task &) = delete;
	Task &operator=(const Task &) = delete;

	// Returns false at the end of the run. A handled signal does not end the wait.
	bool wait(macrotick_job &job)
	{
		int err;

		do
			err = macrotick_wait(&job);
		while (err == -EINTR);
		if (err < 0 && err != -ESHUTDOWN)
			throw std::runtime_error(std::string("cannot wait: ") + std::strerror(-err));
		return err == 0;
	}
};

// Position and speed, with the covariance of their errors.
struct Filter {
	double position, speed;
	double pp, ps, ss;

	void predict(double dt)
	{
		const double noise = 1e-4;

		position += speed * dt;
		pp += dt * (2 * ps + dt * ss);
		ps += dt * ss;
		ss += noise * dt;
	}

	void correct(double measured, double variance)
	{
		const double innovation = measured - position, sum = pp + variance;
		const double to_position = pp / sum, to_speed = ps / sum;

		position += to_position * innovation;
		speed += to_speed * innovation;
		ss -= to_speed * ps;
		ps -= to_position * ps;
		pp -= to_position * pp;
	}
};

// A machine that moves at 0.2 m/s, and a sensor with an error of up to 10 mm.
class Sensor {
public:
	static constexpr double speed = 0.2, error = 0.01;

	double measure(double time)
	{
		state_ = state_ * 1664525u + 1013904223u;
		return speed * time + error * (static_cast<double>(state_ >> 8) / (1 << 23) - 1);
	}

private:
	std::uint32_t state_ = 1;
};

void run()
{
	Task task("filter");
	Filter filter = {0, 0, 1, 0, 1};
	Sensor sensor;
	macrotick_job job;
	unsigned long jobs = 0;
	std::uint64_t first = 0;
	double time = 0;

	if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
		std::perror("filter: memory is not locked");
	macrotick_ready();
	while (task.wait(job)) {
		if (jobs++ == 0)
			first = job.nominal_ns;
		// The table's times: after lost activations this step is longer.
		const double now = static_cast<double>(job.nominal_ns - first) / 1e9;

		filter.predict(now - time);
		filter.correct(sensor.measure(now), Sensor::error * Sensor::error / 3);
		time = now;
	}
	std::printf("filter: %lu jobs, %.1f mm off, speed %.3f m/s\n", jobs,
		    1e3 * std::fabs(filter.position - Sensor::speed * time), filter.speed);
}

}

int main()
{
	try {
		run();
		return 0;
	} catch (const std::exception &failure) {
		std::fprintf(stderr, "filter: %s\n", failure.what());
		return 1;
	}
}
