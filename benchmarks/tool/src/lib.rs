//! The measuring tool of Millstream.
//!
//! It answers "how fast, against whom, and was the answer right?" with definitions that are data
//! ([`definition`]), inputs from a seed ([`input`](millstream_runners::input)), and runners that take turns as whole processes
//! ([`measure`]). What the runs mean is judged ([`judge`]) into plain data ([`results`]), from which every report is made: lines
//! and tables ([`report`]), TAP ([`tap`]), a page ([`html`]). Where the time goes is seen in runs of their own ([`watch`],
//! [`flame`]). Rivals are runners like any other; a runner whose answer is wrong is shown as wrong, never as fast.
//!
//! Numbers of different days or machines are not compared.

pub mod answer;
pub mod chart;
pub mod definition;
pub mod destination;
pub mod docs;
pub mod estimate;
pub mod flame;
pub mod goal;
pub mod html;
pub mod instructions;
pub mod journal;
pub mod judge;
pub mod machine;
pub mod measure;
pub mod noise;
pub mod parameter;
pub mod programs;
pub mod record;
pub mod report;
pub mod results;
pub mod revision;
pub mod rivals;
pub mod session;
pub mod statistics;
pub mod sweep;
pub mod tap;
pub mod watch;
