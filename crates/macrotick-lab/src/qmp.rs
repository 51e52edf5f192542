//! Controls QEMU: its JSON protocol over the process's standard input and output.

use std::io::{BufRead, BufReader, Write};
use std::process::ChildStdin;
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use serde_json::{json, Value};

use crate::qemu::Process;

/// The interval at which a wait checks that the process still runs.
const POLL: std::time::Duration = std::time::Duration::from_millis(50);

/// A connection to a running QEMU.
pub struct Qmp {
    orders: ChildStdin,
    messages: Receiver<Value>,
}

/// The reason why an order failed.
#[derive(Debug)]
pub enum QmpError {
    /// QEMU ended.
    Ended,
    /// The wall limit has passed.
    Limit,
    /// QEMU refused it.
    Refused(String),
}

impl Qmp {
    /// Takes the process's pipes and does the handshake.
    pub fn connect(process: &mut Process) -> Result<Qmp, QmpError> {
        let orders = process.child.stdin.take().ok_or(QmpError::Ended)?;
        let answers = process.child.stdout.take().ok_or(QmpError::Ended)?;
        let (sender, messages) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(answers).lines().map_while(Result::ok);
            for message in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut qmp = Qmp { orders, messages };
        qmp.wait_for(process, |message| message.get("QMP").is_some())?;
        qmp.execute(process, "qmp_capabilities", json!({}))?;
        Ok(qmp)
    }

    /// Sends an order and returns its answer.
    pub fn execute(&mut self, process: &mut Process, order: &str, arguments: Value) -> Result<Value, QmpError> {
        let text = json!({ "execute": order, "arguments": arguments }).to_string();
        writeln!(self.orders, "{text}").and_then(|()| self.orders.flush()).map_err(|_| QmpError::Ended)?;
        let answer = self.wait_for(process, |m| m.get("return").is_some() || m.get("error").is_some())?;
        match answer.get("error") {
            Some(error) => Err(QmpError::Refused(format!("{order}: {error}"))),
            None => Ok(answer["return"].clone()),
        }
    }

    /// Waits for an event of QEMU.
    pub fn wait_for_event(&mut self, process: &mut Process, event: &str) -> Result<(), QmpError> {
        self.wait_for(process, |message| message["event"] == event).map(drop)
    }

    /// Repeats a query until its status is one of `wanted`.
    pub fn wait_for_status(&mut self, process: &mut Process, query: &str, wanted: &[&str]) -> Result<String, QmpError> {
        loop {
            let answer = self.execute(process, query, json!({}))?;
            let status = answer["status"].as_str().unwrap_or("").to_owned();
            if wanted.contains(&status.as_str()) {
                return Ok(status);
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Returns the next message that matches; it drops others.
    fn wait_for(&mut self, process: &mut Process, fits: impl Fn(&Value) -> bool) -> Result<Value, QmpError> {
        loop {
            match self.messages.recv_timeout(POLL) {
                Ok(message) if fits(&message) => return Ok(message),
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(QmpError::Ended),
                Err(RecvTimeoutError::Timeout) if process.is_over() => return Err(QmpError::Limit),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}
