// Millstream without `new Function`: all stages share one loop, as under a content security policy.

import { pipe } from "../../../bindings/node/dist/index.js";
import { runWith } from "./millstream.mjs";

export const modes = ["sync"];

export const run = (job, tally) => runWith(pipe.options({ stamp: false }), job, tally);
