//! The benchmark tool of Millstream.
//!
//! It measures how fast runners are, compares them, and checks their answers. Definitions are data ([`definition`]),
//! inputs are generated from a seed ([`input`](millstream_runners::input)), and runners take turns as whole processes
//! ([`measure`]). The runs are evaluated ([`evaluate`]), which produces plain data ([`results`]) from which all reports are
//! generated: lines and tables ([`report`]), TAP ([`tap`]), and a page ([`html`]). Additional runs show where the time is
//! spent ([`watch`], [`flame`]). Competitors are treated like all other runners. A runner with a wrong answer is shown as
//! wrong, without a time.
//!
//! Results of different days or machines are not compared with each other.

pub mod answer;
pub mod chart;
pub mod competitors;
pub mod definition;
pub mod destination;
pub mod docs;
pub mod estimate;
pub mod evaluate;
pub mod flame;
pub mod goal;
pub mod html;
pub mod instructions;
pub mod journal;
pub mod machine;
pub mod measure;
pub mod noise;
pub mod parameter;
pub mod programs;
pub mod record;
pub mod report;
pub mod results;
pub mod revision;
pub mod session;
pub mod statistics;
pub mod store;
pub mod sweep;
pub mod tap;
pub mod traps;
pub mod watch;
