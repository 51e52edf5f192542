//! The arguments of `probe`, and the options that they mean.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use macrotick_model::Duration;
use macrotick_probe::options::PORT;
use macrotick_probe::{ClockName, Course, Mode, Place, Policy, RunOptions, ServeOptions, SocketOptions};

/// Arguments of `probe`.
#[derive(Debug, Args)]
#[command(subcommand_value_name = "VERB")]
pub struct ProbeArgs {
    /// The verb.
    #[command(subcommand)]
    pub verb: ProbeVerb,
}

/// The verbs of `probe`.
#[derive(Debug, Subcommand)]
pub enum ProbeVerb {
    /// Answer the packets of `probe run`, and record those that go one way
    Serve(ProbeServeArgs),
    /// Send packets at the instants of a grid or of a task, and report when they come
    Run(Box<ProbeRunArgs>),
}

/// The arguments that `serve` and `run` have in common.
#[derive(Debug, Args)]
pub struct ProbeEndArgs {
    /// Run on this CPU only
    #[arg(long)]
    cpu: Option<u32>,
    /// Run under SCHED_FIFO with this priority
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99), group = "policy")]
    fifo: Option<u8>,
    /// Run under SCHED_DEADLINE with this budget in each interval
    #[arg(long, value_name = "BUDGET", group = "policy")]
    reservation: Option<Duration>,
    /// Run as this task of a running plan, or without a name as the task for which `macrotick run` started this process
    #[arg(long, value_name = "NAME", num_args = 0..=1, group = "policy")]
    task: Option<Option<String>>,
    /// The priority of the packets (SO_PRIORITY): it chooses the traffic class, and on a VLAN the PCP
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=15))]
    priority: Option<u8>,
    /// Use this interface only
    #[arg(long, required_if_eq_any = [("xdp", "skb"), ("xdp", "native"), ("device_stamps", "true")])]
    interface: Option<String>,
    /// Take the express path past the network stack (AF_XDP)
    #[arg(long, value_enum)]
    xdp: Option<XdpMode>,
    /// The receive queue of the express path
    #[arg(long, default_value_t = 0, requires = "xdp")]
    queue: u32,
    /// Wait by asking again and again, without sleep
    #[arg(long)]
    busy_poll: bool,
    /// Have the device stamp the packets, if it can
    #[arg(long)]
    device_stamps: bool,
}

/// Arguments of `probe serve`.
#[derive(Debug, Args)]
pub struct ProbeServeArgs {
    /// The address and the port
    #[arg(long, default_value_t = SocketAddr::from(([0, 0, 0, 0], PORT)))]
    listen: SocketAddr,
    /// Answer at most this many packets in a second
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Keep at most this many records of a one-way run, of 24 bytes each
    #[arg(long, value_name = "COUNT", default_value_t = 1 << 20)]
    records: usize,
    /// The period of `--reservation`
    #[arg(long, value_parser = positive, default_value = "1ms")]
    interval: Duration,
    /// How long a job of `--task` waits for packets; by default it takes what is there
    #[arg(long, default_value = "0s")]
    wait: Duration,
    /// Print the counts as JSON
    #[arg(long)]
    pub json: bool,
    /// The thread and the socket
    #[command(flatten)]
    end: ProbeEndArgs,
}

/// Arguments of `probe run`.
#[derive(Debug, Args)]
pub struct ProbeRunArgs {
    /// The server: an address or a name, with its port unless that is 7600
    destination: String,
    /// The number of packets; 0: until SIGINT, which ends every run and prints its results
    #[arg(short = 'n', long, default_value_t = 0)]
    count: u64,
    /// The length of the run
    #[arg(short, long)]
    duration: Option<Duration>,
    /// The cycle: the packets of a cycle have one nominal instant
    #[arg(short, long, value_parser = positive, default_value = "1ms")]
    interval: Duration,
    /// The size of a packet, in bytes of UDP payload
    #[arg(short, long, default_value_t = 500)]
    size: usize,
    /// The packets in each cycle
    #[arg(short, long, default_value_t = 1)]
    burst: u32,
    /// The deadline of a packet after its nominal instant: of its answer, or one way of its arrival
    #[arg(long, value_parser = positive, default_value = "1ms")]
    deadline: Duration,
    /// Send packets one way: the server records when they arrive
    #[arg(long)]
    one_way: bool,
    /// The clock of the nominal instants: `monotonic`, or `tai` for hosts with synchronised clocks
    #[arg(long, value_enum, default_value_t = ClockArg::Monotonic)]
    clock: ClockArg,
    /// The nominal instants are whole intervals of the clock, plus this
    #[arg(long, default_value = "0s")]
    offset: Duration,
    /// Send this long before the nominal instant
    #[arg(long, default_value = "0s", conflicts_with = "txtime")]
    early: Duration,
    /// Send this long before the nominal instant, with that instant as launch time (SO_TXTIME) for etf or taprio
    #[arg(long, value_name = "DELTA", value_parser = positive, conflicts_with = "xdp")]
    txtime: Option<Duration>,
    /// Wait this long for the last packets
    #[arg(long, default_value = "1s")]
    linger: Duration,
    /// Take the clocks of both hosts for one, without a check
    #[arg(long)]
    assume_common_clock: bool,
    /// Have the kernel stamp the packets at the queueing discipline and at the driver, too
    #[arg(long, conflicts_with = "xdp")]
    stamps: bool,
    /// Record the kernel's events on the way of the packets
    #[arg(long, conflicts_with = "xdp")]
    trace: bool,
    /// The bins of the histogram, of 1 us each
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    histogram: usize,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
    /// Write the results to this file (JSON)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write the times of each packet to this file (CSV)
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// The thread and the socket
    #[command(flatten)]
    end: ProbeEndArgs,
}

/// [`ClockName`] on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ClockArg {
    /// CLOCK_MONOTONIC
    Monotonic,
    /// CLOCK_TAI
    Tai,
}

/// [`Mode`] on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum XdpMode {
    /// With every driver
    Skb,
    /// In the driver, if it can
    Native,
}

/// Parses a length of time above zero.
fn positive(text: &str) -> Result<Duration, String> {
    let length = text.parse::<Duration>().map_err(|error| error.to_string())?;
    if length > Duration::ZERO {
        Ok(length)
    } else {
        Err("must be longer than zero".into())
    }
}

/// Finds a server: `HOST`, `HOST:PORT` or `[IPv6]:PORT`.
fn resolve(text: &str) -> std::io::Result<SocketAddr> {
    let with_port = text.to_socket_addrs();
    let found = with_port.or_else(|_| (text.trim_matches(['[', ']']), PORT).to_socket_addrs())?;
    // A name of this host may have an IPv6 address first, at which a server by default does not listen.
    let all: Vec<SocketAddr> = found.collect();
    let ipv4 = all.iter().find(|address| address.is_ipv4()).or(all.first());
    ipv4.copied().ok_or_else(|| std::io::ErrorKind::AddrNotAvailable.into())
}

impl ProbeEndArgs {
    fn policy(&self, period: Duration) -> Policy {
        match (self.fifo, self.reservation, &self.task) {
            (Some(priority), _, _) => Policy::Fifo(priority),
            (_, Some(runtime), _) => Policy::Deadline { runtime, period },
            (_, _, Some(name)) => Policy::Task(name.clone()),
            _ => Policy::Unchanged,
        }
    }

    fn socket(&self, stamps_out: bool) -> SocketOptions {
        SocketOptions {
            priority: self.priority,
            interface: self.interface.clone(),
            stamps: true,
            stamps_out,
            device_stamps: self.device_stamps,
            busy_poll: self.busy_poll,
            ..SocketOptions::default()
        }
    }

    fn xdp(&self) -> Option<Place> {
        let mode = match self.xdp? {
            XdpMode::Skb => Mode::Skb,
            XdpMode::Native => Mode::Native,
        };
        Some(Place { interface: self.interface.clone()?, queue: self.queue, mode })
    }
}

impl ProbeServeArgs {
    /// Returns what the server does.
    pub fn options(&self) -> ServeOptions {
        ServeOptions {
            listen: self.listen,
            policy: self.end.policy(self.interval),
            cpu: self.end.cpu,
            wait: self.wait,
            socket: self.end.socket(false),
            xdp: self.end.xdp(),
            rate: self.rate,
            records: self.records,
        }
    }
}

impl ProbeRunArgs {
    /// Returns the server as it was named.
    pub fn destination(&self) -> &str {
        &self.destination
    }

    /// Returns what the client does. It fails if the server's name is unknown.
    pub fn options(&self) -> std::io::Result<RunOptions> {
        let course = Course {
            one_way: self.one_way,
            clock: match self.clock {
                ClockArg::Monotonic => ClockName::Monotonic,
                ClockArg::Tai => ClockName::Tai,
            },
            size: self.size,
            trace: self.trace,
            burst: self.burst,
            deadline: self.deadline,
            linger: self.linger,
            early: self.txtime.unwrap_or(self.early),
            launch: self.txtime.is_some(),
            packets: (self.count > 0).then_some(self.count),
            duration: self.duration,
            assume_common_clock: self.assume_common_clock,
        };
        Ok(RunOptions {
            destination: resolve(&self.destination)?,
            course,
            interval: self.interval,
            offset: self.offset,
            policy: self.end.policy(self.interval),
            cpu: self.end.cpu,
            socket: self.end.socket(self.stamps),
            xdp: self.end.xdp(),
            bins: self.histogram,
            cmdline: std::env::args().collect::<Vec<_>>().join(" "),
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::{Cli, Verb};

    fn run(words: &[&str]) -> Result<RunOptions, String> {
        let cli = Cli::try_parse_from([&["macrotick", "probe", "run"], words].concat());
        match cli.map_err(|error| error.to_string())?.verb {
            Verb::Probe(ProbeArgs { verb: ProbeVerb::Run(args) }) => args.options().map_err(|error| error.to_string()),
            _ => panic!("another verb"),
        }
    }

    #[test]
    fn a_server_has_a_port() {
        let find = |text| resolve(text).unwrap().to_string();
        assert_eq!(find("10.0.0.2"), "10.0.0.2:7600");
        assert_eq!(find("10.0.0.2:9"), "10.0.0.2:9");
        assert_eq!(find("[::1]:9"), "[::1]:9");
        assert_eq!([find("::1"), find("[::1]")], ["[::1]:7600", "[::1]:7600"]);
        assert!(resolve("10.0.0.2:port").is_err());
    }

    #[test]
    fn options_mean_what_they_say() {
        let plain = run(&["10.0.0.2"]).unwrap();
        assert_eq!((plain.course.packets, plain.course.size, plain.course.burst), (None, 500, 1));
        assert_eq!((plain.policy, plain.course.launch), (Policy::Unchanged, false));
        let launch = run(&["10.0.0.2", "--txtime", "200us", "--clock", "tai", "-n", "5"]).unwrap();
        assert_eq!((launch.course.early, launch.course.packets), (Duration::from_micros(200), Some(5)));
        assert!(launch.course.launch && launch.course.clock == ClockName::Tai);
        let task = run(&["10.0.0.2", "--task"]).unwrap();
        assert_eq!(task.policy, Policy::Task(None));
        let deadline = run(&["10.0.0.2", "--reservation", "100us", "-i", "2ms"]).unwrap();
        let period = Duration::from_millis(2);
        assert_eq!(deadline.policy, Policy::Deadline { runtime: Duration::from_micros(100), period });
        let express = run(&["10.0.0.2", "--xdp", "native", "--interface", "eth1", "--queue", "2"]).unwrap();
        let place = express.xdp.unwrap();
        assert_eq!((place.interface.as_str(), place.queue, place.mode), ("eth1", 2, Mode::Native));
    }

    #[test]
    fn contradictions_are_refused() {
        for words in [
            &["--fifo", "80", "--task", "a"][..],
            &["--fifo", "0"],
            &["--xdp", "skb"],
            &["--device-stamps"],
            &["--xdp", "skb", "--interface", "eth0", "--stamps"],
            &["--txtime", "1ms", "--early", "1ms"],
            &["--interval", "0ms"],
            &["--queue", "1"],
        ] {
            assert!(run(&[&["10.0.0.2"], words].concat()).is_err(), "{words:?}");
        }
    }
}
