//! The measuring tool of Millstream.
//!
//! It answers "how fast, against whom, and was the answer right?" with definitions that are data
//! ([`definition`]), inputs from a seed ([`input`]), runners that take turns as whole processes ([`measure`]), and
//! a table with the goal beside each ratio ([`report`]). Rivals are runners like any other; a runner whose answer
//! is wrong is shown as wrong, never as fast.
//!
//! It does not profile, and it does not judge a change: numbers of different days or machines are not compared.

pub mod answer;
pub mod definition;
pub mod destination;
pub mod documents;
pub mod html;
pub mod input;
pub mod machine;
pub mod measure;
pub mod names;
pub mod numbers;
pub mod report;
pub mod results;
pub mod rivals;
pub mod statistics;
pub mod sweep;
