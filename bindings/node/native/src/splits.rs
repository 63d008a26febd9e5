//! Plans that divide files, made on a separate thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use millstream::splits::{Framing, SplitPin, Splits, SplitsBuilder};
use millstream::{CancelToken, Decode, Error, ErrorKind};
use napi::bindgen_prelude::Function;
use napi_derive::napi;

use crate::error::Failure;
use crate::remote::NativeRemote;
use crate::wake::waking;

/// The options of a plan. TypeScript has checked the words.
#[napi(object, object_to_js = false)]
pub struct PlanOptions {
    /// The framing as in the JSON of a split.
    pub framing: String,
    pub size: f64,
    pub pin: String,
    pub decode: String,
    pub index: Option<String>,
    pub number: bool,
}

/// A plan that a thread makes.
#[napi]
pub struct NativePlan {
    made: Arc<Mutex<Option<Result<String, Error>>>>,
    token: CancelToken,
}

#[napi]
impl NativePlan {
    /// Starts the thread. It calls `wake` at its end.
    #[napi(factory)]
    pub fn start(path: String, options: PlanOptions, wake: Function<(), ()>) -> napi::Result<NativePlan> {
        NativePlan::run(options, wake, move |builder, framing, size| builder.plan(path, framing, size))
    }

    /// Starts the thread for a remote object.
    #[napi(factory)]
    pub fn url(remote: &NativeRemote, options: PlanOptions, wake: Function<(), ()>) -> napi::Result<NativePlan> {
        let remote = remote.core();
        NativePlan::run(options, wake, move |builder, framing, size| builder.plan_url(remote, framing, size))
    }

    fn run(
        options: PlanOptions,
        wake: Function<(), ()>,
        plan: impl FnOnce(SplitsBuilder, Framing, u64) -> Result<Splits, Error> + Send + 'static,
    ) -> napi::Result<NativePlan> {
        let token = CancelToken::lazy();
        let made = Arc::new(Mutex::new(None));
        let started = NativePlan { made: made.clone(), token: token.clone() };
        let wake = waking(wake)?;
        std::thread::Builder::new().name("millstream".to_owned()).spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(|| make(options, &token, plan)));
            let result = result.unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal)));
            *made.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            wake();
        })?;
        Ok(started)
    }

    /// Returns the plan as JSON when it is complete.
    #[napi]
    pub fn json(&self) -> Option<String> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.as_ref().ok().cloned()
    }

    /// Returns the error if there is no plan.
    #[napi]
    pub fn failure(&self) -> Option<Failure> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.as_ref().err().map(Failure::from)
    }

    /// Ends the planning.
    #[napi]
    pub fn stop(&self) {
        self.token.cancel();
    }
}

/// An environment that ends drops all plans.
impl Drop for NativePlan {
    fn drop(&mut self) {
        self.stop();
    }
}

fn make(
    options: PlanOptions,
    token: &CancelToken,
    plan: impl FnOnce(SplitsBuilder, Framing, u64) -> Result<Splits, Error>,
) -> Result<String, Error> {
    let framing: Framing = serde_json::from_str(&options.framing).map_err(|error| {
        Error::new(ErrorKind::InvalidOption).with_found(error.to_string()).with_expected("a framing of this version")
    })?;
    let pin = match &*options.pin {
        "none" => SplitPin::None,
        "ends" => SplitPin::Ends,
        "full" => SplitPin::Full,
        _ => SplitPin::Identity,
    };
    let decode = if options.decode == "off" { Decode::Off } else { Decode::Auto };
    let mut builder = Splits::builder().pin(pin).decode(decode).number(options.number).cancel(token);
    if let Some(index) = options.index {
        builder = builder.index(index);
    }
    Ok(plan(builder, framing, options.size as u64)?.to_json())
}
