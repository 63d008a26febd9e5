/** Decimal numbers of 34 digits, as specified for BSON's Decimal128. They are stored unchanged and written as text. */

/** The largest number of 34 digits. */
const LARGEST = 9_999_999_999_999_999_999_999_999_999_999_999n;

/** The stored form of an exponent of zero. */
const BIAS = 6176;

/** A decimal number. JavaScript lacks this type, and a `number` would lose digits. */
export class Decimal128 {
  constructor(
    /** The 16 bytes, the lowest first. */
    readonly bytes: Uint8Array,
  ) {}

  /** Returns all digits, with an exponent if that is shorter. */
  toString(): string {
    const view = new DataView(this.bytes.buffer, this.bytes.byteOffset, 16);
    const high = view.getBigUint64(8, true);
    const sign = high >> 63n ? "-" : "";
    const kind = Number((high >> 58n) & 31n);
    if (kind === 31) return "NaN";
    if (kind === 30) return `${sign}Infinity`;
    // The large form, whose significand always exceeds the limit, means zero.
    const isLarge = kind >= 24;
    const exponent = Number((high >> (isLarge ? 47n : 49n)) & 0x3fffn) - BIAS;
    const significand = isLarge ? 0n : ((high & 0x1ffffffffffffn) << 64n) | view.getBigUint64(0, true);
    return sign + textOf(significand > LARGEST ? 0n : significand, exponent);
  }

  toJSON(): unknown {
    return { $numberDecimal: this.toString() };
  }
}

function textOf(significand: bigint, exponent: number): string {
  const digits = String(significand);
  const scientific = exponent + digits.length - 1;
  if (exponent > 0 || scientific < -6) {
    const point = digits.length > 1 ? "." : "";
    return `${digits[0]}${point}${digits.slice(1)}E${scientific < 0 ? "" : "+"}${scientific}`;
  }
  if (exponent === 0) return digits;
  const padded = digits.padStart(1 - exponent, "0");
  return `${padded.slice(0, exponent)}.${padded.slice(exponent)}`;
}
