//! Sends and receives frames over a TCP connection, each with its deadline: both ends of the
//! protocol use it.

use crate::protocol::{WireError, WireMessage};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The longest time from the first byte of a frame to its last, and for each step of the handshake.
/// A frame has at most 32 KiB, which a slow network carries in less.
pub(crate) const FRAME_TIMEOUT: Duration = Duration::from_secs(5);

/// A socket whose reads and writes end by a deadline, however slowly bytes drip in.
#[derive(Debug)]
pub(crate) struct DeadlineStream {
    stream: TcpStream,
    /// The frame that is being written must be complete at this time, and of one that is being
    /// read, its first bytes or the whole of it; `None` before the first frame.
    deadline: Option<Instant>,
    /// True before the first bytes of a frame that is being read.
    awaits_frame: bool,
}

impl DeadlineStream {
    pub(crate) fn new(stream: TcpStream) -> Self {
        // Reports are small, and each waits for its answer.
        let _ = stream.set_nodelay(true);
        Self {
            stream,
            deadline: None,
            awaits_frame: false,
        }
    }

    /// Sends a frame; the other side has to take it in time.
    pub(crate) fn send(&mut self, message: &WireMessage) -> io::Result<()> {
        self.deadline = Some(Instant::now() + FRAME_TIMEOUT);
        message.send(self)
    }

    /// Receives a frame that begins within `patience` and is complete [`FRAME_TIMEOUT`] later.
    pub(crate) fn receive(&mut self, patience: Duration) -> Result<WireMessage, WireError> {
        self.deadline = Some(Instant::now() + patience);
        self.awaits_frame = true;
        WireMessage::receive(self)
    }

    /// The time until the deadline; an error of the kind `TimedOut` once it has passed.
    fn time_left(&self) -> io::Result<Duration> {
        let left = match self.deadline {
            Some(deadline) => deadline.saturating_duration_since(Instant::now()),
            None => FRAME_TIMEOUT,
        };
        if left.is_zero() {
            Err(io::ErrorKind::TimedOut.into())
        } else {
            Ok(left)
        }
    }
}

impl Read for DeadlineStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = loop {
            self.stream.set_read_timeout(Some(self.time_left()?))?;
            match self.stream.read(buffer) {
                // A signal, even one that restarts other calls (signal(7)).
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result.map_err(as_timeout)?,
            }
        };
        // The patience was for the first bytes. The rest of the frame has to follow soon, and has
        // its own time, however late the first bytes came.
        if self.awaits_frame {
            self.awaits_frame = false;
            self.deadline = Some(Instant::now() + FRAME_TIMEOUT);
        }
        Ok(length)
    }
}

impl Write for DeadlineStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.time_left()?))?;
        self.stream.write(bytes).map_err(as_timeout)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// A socket's timeout is EAGAIN, whose text would mislead.
fn as_timeout(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn frame_that_begins_at_the_end_of_the_patience_has_its_whole_time() {
        const PATIENCE: Duration = Duration::from_millis(100);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (receiver, _) = listener.accept().unwrap();
        let frame = WireMessage::Stop.encode().unwrap();
        sender.write_all(&frame[..1]).unwrap();
        let sending = std::thread::spawn(move || {
            std::thread::sleep(3 * PATIENCE);
            sender.write_all(&frame[1..]).unwrap();
            sender
        });
        let mut stream = DeadlineStream::new(receiver);
        assert_eq!(stream.receive(PATIENCE).unwrap(), WireMessage::Stop);
        // Silence still ends with the patience.
        assert!(stream.receive(PATIENCE).is_err());
        drop(sending.join().unwrap());
    }
}
