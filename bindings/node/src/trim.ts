/**
 * The part of a record that is not its content. This is a separate file because `batch.ts` and `strings.ts` need it.
 */

/** The part of a record's bytes that is not its content. */
export interface Trim {
  /** Bytes at the front: a length prefix. */
  readonly head: number;
  /** Bytes at the end, if the record is terminated: a delimiter. */
  readonly tail: number;
  /** Whether a carriage return before the delimiter is not content either. */
  readonly carriageReturn: boolean;
}

/** Every byte is content. */
export const TRIM_NOTHING: Trim = { head: 0, tail: 0, carriageReturn: false };
