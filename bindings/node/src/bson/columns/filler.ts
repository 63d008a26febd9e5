/** What fills columns: TypeScript, or the native part where it is there. Both do the same. */

/** How columns are filled: numbers of bytes, and what is no error. */
export interface FillerOptions {
  readonly mismatchIsNull: boolean;
  readonly unknownIsError: boolean;
  readonly batchBytes: number;
  readonly memoryLimit: number;
}

/** How far `append` came. */
export interface Appended {
  /** How many documents are rows now, and how many bytes these have. */
  readonly rows: number;
  readonly bytes: number;
  /** What is wrong with the next one, its offset counted from the first byte of the call. */
  readonly error?: unknown;
}

/** Rows that have been taken. */
export interface Taken {
  readonly rows: number;
  readonly mismatched: number;
  readonly unknown: number;
  /** As `assemble` wants them. */
  readonly parts: Uint8Array[];
}

/** Columns that grow by a row for each document. */
export interface Filler {
  /** Whether the rows take as much as a batch should. */
  readonly isFull: boolean;
  /** Appends the documents in these bytes, until a batch is full. */
  append(bytes: Uint8Array): Appended;
  /** The rows; there is none then. */
  take(): Taken;
}
