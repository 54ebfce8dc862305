//! State of a client and of a connection to the service. The decisions are taken in `exchange.rs`,
//! none here.

use loadlens_http::response::{BodyDecoder, Framing};

use crate::counts::Outcome;
use crate::draws::Fate;
use crate::head::Request;
use crate::wire::Wire;

/// Stage of a client in its exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Waits for a request, or for the rest of its head.
    Idle,
    /// Its request is held back.
    Delayed,
    /// Its request waits for a place since then.
    Waiting(u64),
    /// Its request has a place and is about to go on.
    Granted,
    /// The service has its request, on this connection.
    Served(u64),
    /// Its answer is on the way out; the request then has this outcome.
    Writing(Option<Outcome>),
    /// It was answered before its body had come: the rest is thrown away.
    Skipping,
    /// It hears nothing more.
    Silent,
    /// It is reset once it has what was sent to it.
    Breaking,
    /// Our side has ended; we wait for its end.
    Over,
}

/// One client.
pub(crate) struct Client {
    pub wire: Wire,
    pub stage: Stage,
    /// It reads the counts.
    pub is_control: bool,
    /// The request in hand.
    pub request: Request,
    /// Its head, as it is passed on.
    pub head: Vec<u8>,
    /// Rest of its body.
    pub body: BodyDecoder,
    pub fate: Fate,
    /// The connection ends behind the answer.
    pub closes: bool,
    /// Something of the answer has gone to the client.
    pub is_answered: bool,
    /// Time to look at its stage again; 0: not at all.
    pub at_ns: u64,
    /// Time of its reset, even if it has not taken everything.
    pub breaks_ns: u64,
}

impl Client {
    pub fn new(wire: Wire, is_control: bool) -> Client {
        Client {
            wire,
            stage: Stage::Idle,
            is_control,
            request: Request::NONE,
            head: Vec::new(),
            body: BodyDecoder::new(Framing::None),
            fate: Fate::default(),
            closes: false,
            is_answered: false,
            at_ns: 0,
            breaks_ns: 0,
        }
    }
}

/// State of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// The connection is not there yet.
    Connecting,
    /// No request wants an answer.
    Idle,
    /// Its head is awaited.
    Head,
    /// Its head is there and held back.
    Held,
    /// Its body comes.
    Body(BodyDecoder),
}

/// One connection to the service.
pub(crate) struct Upstream {
    pub wire: Wire,
    /// Index of the service.
    pub backend: usize,
    pub part: Part,
    /// The client of the answer; none: it has left, and the answer is read and thrown away.
    pub client: Option<u64>,
    pub request: Request,
    /// The whole request has been handed over.
    pub has_all: bool,
    /// The head has been held back as long as it is to be.
    pub was_held: bool,
    /// The connection can be used again behind this answer.
    pub keeps: bool,
    /// After so many more bytes of the body the client is reset.
    pub cut: Option<usize>,
    /// Without a client: so many bytes more are heard.
    pub patience: usize,
    /// Time at which the service has been silent for too long; 0: nothing is awaited.
    pub deadline_ns: u64,
    /// A timer for the deadline is set.
    pub is_timed: bool,
    /// Time until which the answer is held back; 0: it is not.
    pub at_ns: u64,
}
