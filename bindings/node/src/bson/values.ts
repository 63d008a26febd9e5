/** Classes for the BSON types that JavaScript lacks. They are plain data; `JSON.stringify` writes them as Extended
 * JSON.
 */

/** Bytes of a subtype other than 0. (Bytes of subtype 0 are a `Uint8Array`.) */
export class Binary {
  constructor(
    /** The meaning of the bytes: 4 for a UUID, 9 for a vector; 128 and higher are defined by the user. */
    readonly subtype: number,
    readonly bytes: Uint8Array,
  ) {}

  toJSON(): unknown {
    const base64 = btoa(Array.from(this.bytes, (byte) => String.fromCharCode(byte)).join(""));
    return { $binary: { base64, subType: this.subtype.toString(16).padStart(2, "0") } };
  }
}

/** An identifier of twelve bytes. */
export class ObjectId {
  constructor(readonly bytes: Uint8Array) {}

  /** Returns the id in hexadecimal. */
  toString(): string {
    return Array.from(this.bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  toJSON(): unknown {
    return { $oid: this.toString() };
  }
}

/** A time outside the range of `Date`: more than 100 million days from 1970. */
export class DateTime {
  constructor(readonly milliseconds: bigint) {}

  toJSON(): unknown {
    return { $date: { $numberLong: String(this.milliseconds) } };
  }
}

/** A time of MongoDB's replication: seconds since 1970, and a counter. */
export class Timestamp {
  constructor(
    readonly time: number,
    readonly increment: number,
  ) {}

  toJSON(): unknown {
    return { $timestamp: { t: this.time, i: this.increment } };
  }
}

/** A PCRE regular expression, not necessarily in JavaScript's syntax. */
export class RegularExpression {
  constructor(
    readonly pattern: string,
    readonly options: string,
  ) {}

  toJSON(): unknown {
    return { $regularExpression: { pattern: this.pattern, options: this.options } };
  }
}

/** A program, optionally with the values of its variables. It is treated as text and never executed. */
export class Code {
  constructor(
    readonly code: string,
    readonly scope?: { readonly [key: string]: unknown },
  ) {}

  toJSON(): unknown {
    return this.scope === undefined ? { $code: this.code } : { $code: this.code, $scope: this.scope };
  }
}

/** A reference to a document of another collection. */
export class DbPointer {
  constructor(
    readonly collection: string,
    readonly id: ObjectId,
  ) {}

  toJSON(): unknown {
    return { $dbPointer: { $ref: this.collection, $id: this.id } };
  }
}

/** A symbol, as some languages have it. */
export class BsonSymbol {
  constructor(readonly symbol: string) {}

  toJSON(): unknown {
    return { $symbol: this.symbol };
  }
}

/** A value that is less than every other value. */
export class MinKey {
  toJSON(): unknown {
    return { $minKey: 1 };
  }
}

/** A value that is greater than every other value. */
export class MaxKey {
  toJSON(): unknown {
    return { $maxKey: 1 };
  }
}
