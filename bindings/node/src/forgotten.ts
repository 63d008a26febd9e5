/** Reports readers and writers that were neither closed nor used to their end. */

/** Set by Node's entry point, except in production. */
export const forgotten: { warn?: (message: string) => void } = {};
