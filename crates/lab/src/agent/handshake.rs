//! How the ends of a TCP connection prove that they know the token, before anything else is read.
//!
//! ```text
//! agent:      protocol, nonce
//! controller: nonce, proof
//! agent:      proof, or an error
//! ```

use std::io::{BufRead, Read as _, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::line;
use super::protocol::{AgentReply, PROTOCOL};
use super::token::{AgentToken, ProvingEnd, is_nonce, nonce};

/// The time that a controller has for its proof.
const TIME_MAX: Duration = Duration::from_secs(10);
/// The longest line before the token is proven.
const BYTES_MAX: usize = 512;
const WRONG: &str = "wrong token";

#[derive(Deserialize, Serialize)]
struct AgentGreeting {
    agent: String,
    protocol: u32,
    nonce: String,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ControllerProof {
    nonce: String,
    proof: String,
}

/// Waits for the controller's proof; returns the agent's, which ends the handshake.
pub(super) fn await_proof(stream: &mut TcpStream, token: &AgentToken) -> Result<String, String> {
    let own = nonce();
    let greeting =
        AgentGreeting { agent: "weir lab".to_owned(), protocol: PROTOCOL, nonce: own.clone() };
    send(stream, &greeting)?;
    let said = line_in_time(stream)?;
    let said: ControllerProof =
        serde_json::from_str(&said).map_err(|_| "no proof of a token".to_owned())?;
    let (end, other) = (ProvingEnd::Controller, &said.nonce);
    if !is_nonce(other) || !token.is_proven(&said.proof, end, &own, other) {
        return Err(WRONG.to_owned());
    }
    Ok(token.proof(ProvingEnd::Agent, &own, other))
}

/// A line from somebody unknown: short, and with a deadline for all of it.
fn line_in_time(stream: &mut TcpStream) -> Result<String, String> {
    let (begun, mut line) = (Instant::now(), Vec::new());
    loop {
        let left = TIME_MAX.checked_sub(begun.elapsed()).filter(|left| !left.is_zero());
        let left = left.ok_or("no proof of a token in time")?;
        stream.set_read_timeout(Some(left)).map_err(|error| error.to_string())?;
        let mut bytes = [0; BYTES_MAX];
        match stream.read(&mut bytes) {
            Ok(0) => return Err("the connection ended before the proof".to_owned()),
            Ok(read) => line.extend_from_slice(&bytes[..read]),
            Err(error) => return Err(error.to_string()),
        }
        match line.iter().position(|byte| *byte == b'\n') {
            Some(end) if end + 1 == line.len() => break,
            None if line.len() <= BYTES_MAX => {}
            _ => return Err("no proof of a token".to_owned()),
        }
    }
    String::from_utf8(line).map_err(|_| "no proof of a token".to_owned())
}

/// The controller's end.
pub(super) fn prove(
    from: &mut dyn BufRead,
    to: &mut dyn Write,
    token: &AgentToken,
) -> Result<(), String> {
    let ended = || "the connection ended".to_owned();
    let greeting = line::next(from)?.ok_or_else(ended)?;
    let greeting: AgentGreeting =
        serde_json::from_str(&greeting).map_err(|_| "it is no weir lab agent".to_owned())?;
    if greeting.protocol != PROTOCOL {
        let other = greeting.protocol;
        return Err(format!(
            "it speaks protocol {other}, not {PROTOCOL}: install the same version on both"
        ));
    }
    let (agent, own) = (greeting.nonce, nonce());
    let proof = token.proof(ProvingEnd::Controller, &agent, &own);
    send(to, &ControllerProof { nonce: own.clone(), proof })?;
    let reply = line::next(from)?.ok_or_else(ended)?;
    match serde_json::from_str(&reply) {
        Ok(AgentReply::Ok(proof)) => {
            let proof = proof.as_str().unwrap_or_default();
            let is_proven = token.is_proven(proof, ProvingEnd::Agent, &agent, &own);
            is_proven.then_some(()).ok_or_else(|| "it does not know the token".to_owned())
        }
        Ok(AgentReply::Error(why)) => Err(why),
        Err(_) => Err("it is no weir lab agent".to_owned()),
    }
}

/// Writes a value as a line.
pub(super) fn send(to: &mut dyn Write, value: &impl Serialize) -> Result<(), String> {
    let line = serde_json::to_string(value).map_err(|error| error.to_string())? + "\n";
    let sent = to.write_all(line.as_bytes()).and_then(|()| to.flush());
    sent.map_err(|error| error.to_string())
}
