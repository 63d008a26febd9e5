/** The types of adapters made of stages. They check that each stage fits the next, and give the input of the first. */

import { checkOptions, type Tables } from "../options.js";
import type { Sink, StreamSink, StreamSummary } from "../pipe/sink.js";
import type { Stage } from "../pipe/stage.js";
import { checkAdapterOptions, type FirstItem, type InputOptions, type OutputOptions } from "./options.js";

/**
 * Stages in the middle of a stream `S`, which is written to and read from. `A` is the input type of the first stage.
 */
export interface Between<A, S, Options extends InputOptions & OutputOptions> {
  (): S;
  (a: Stage<A, any>): S;
  <B>(a: Stage<A, B>, b: Stage<B, any>): S;
  <B, C>(a: Stage<A, B>, b: Stage<B, C>, c: Stage<C, any>): S;
  <B, C, D>(a: Stage<A, B>, b: Stage<B, C>, c: Stage<C, D>, d: Stage<D, any>): S;
  <B, C, D, E>(a: Stage<A, B>, b: Stage<B, C>, c: Stage<C, D>, d: Stage<D, E>, e: Stage<E, any>): S;
  <B, C, D, E, F>(a: Stage<A, B>, b: Stage<B, C>, c: Stage<C, D>, d: Stage<D, E>, e: Stage<E, F>, f: Stage<F, any>): S;
  /** Stages chosen at run time, and any number of them. */
  (stages: readonly Stage<any, any>[]): S;
  /** The same with options. */
  options<const O extends Options>(options: O): Between<FirstItem<O, A>, S, Options>;
}

/** A writable stream, and the result of its sink. */
export type Ended<S, R> = S & {
  /** The result of the sink, as for `pipe`. It need not be awaited: errors are also reported by the stream. */
  readonly result: Promise<R>;
};

/** Stages and a sink at the end of a stream `S`, which is written to. */
export interface AtEnd<A, S, Options extends InputOptions> {
  <R>(sink: Sink<A, R>): Ended<S, R>;
  (sink: StreamSink): Ended<S, StreamSummary>;
  <B, R>(a: Stage<A, B>, sink: Sink<B, R>): Ended<S, R>;
  <B>(a: Stage<A, B>, sink: StreamSink): Ended<S, StreamSummary>;
  <B, C, R>(a: Stage<A, B>, b: Stage<B, C>, sink: Sink<C, R>): Ended<S, R>;
  <B, C>(a: Stage<A, B>, b: Stage<B, C>, sink: StreamSink): Ended<S, StreamSummary>;
  <B, C, D, R>(a: Stage<A, B>, b: Stage<B, C>, c: Stage<C, D>, sink: Sink<D, R>): Ended<S, R>;
  <B, C, D>(a: Stage<A, B>, b: Stage<B, C>, c: Stage<C, D>, sink: StreamSink): Ended<S, StreamSummary>;
  /** Stages chosen at run time, and any number of them. */
  <R>(stages: readonly Stage<any, any>[], sink: Sink<any, R>): Ended<S, R>;
  (stages: readonly Stage<any, any>[], sink: StreamSink): Ended<S, StreamSummary>;
  /** The same with options. */
  options<const O extends Options>(options: O): AtEnd<FirstItem<O, A>, S, Options>;
}

/** A function with `options`, which returns the same function with these options added. */
export function withOptions<O extends InputOptions & OutputOptions, F>(
  name: string,
  tables: Tables<O>,
  make: (options: O, parts: unknown[]) => unknown,
  options: O,
): F {
  const call = (...parts: unknown[]) => make(options, parts.flat());
  call.options = (more: O) => {
    checkOptions(`${name}.options`, more, tables);
    const all = { ...options, ...more };
    checkAdapterOptions(`${name}.options`, all, tables);
    return withOptions<O, F>(name, tables, make, all);
  };
  return call as F;
}
