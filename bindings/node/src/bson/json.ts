/** Values as the text of relaxed Extended JSON, byte for byte as the core and MongoDB's tools write it. */

import { platform } from "../text.js";
import type { Cursor } from "./cursor.js";
import { Decimal128 } from "./decimal.js";

/** The first moment that is written as a number: the year 10000. */
const LATE = 253_402_300_800_000;

/** The text of the value of this type that the cursor is at. Recursion is as deep as the cursor allows. */
export function appendJson(type: number, cursor: Cursor): string {
  const { view } = cursor;
  switch (type) {
    case 0x01:
      return double(view.getFloat64(cursor.take(8), true));
    case 0x02:
      return text(cursor);
    case 0x03:
    case 0x04:
      return members(cursor, type === 0x04);
    case 0x05: {
      const start = cursor.binary();
      const subtype = cursor.subtype.toString(16).padStart(2, "0");
      return `{"$binary":{"base64":"${base64(cursor.bytes, start, cursor.at)}","subType":"${subtype}"}}`;
    }
    case 0x06:
      return '{"$undefined":true}';
    case 0x07:
      return objectId(cursor);
    case 0x08:
      return String(cursor.bool());
    case 0x09:
      return date(view.getBigInt64(cursor.take(8), true));
    case 0x0a:
      return "null";
    case 0x0b: {
      const pattern = cText(cursor);
      const letters = [...cText(cursor)].sort((a, b) => (a.codePointAt(0) ?? 0) - (b.codePointAt(0) ?? 0));
      const options = JSON.stringify(letters.join(""));
      return `{"$regularExpression":{"pattern":${JSON.stringify(pattern)},"options":${options}}}`;
    }
    case 0x0c:
      return `{"$dbPointer":{"$ref":${text(cursor)},"$id":${objectId(cursor)}}}`;
    case 0x0d:
      return `{"$code":${text(cursor)}}`;
    case 0x0e:
      return `{"$symbol":${text(cursor)}}`;
    case 0x0f:
      return codeWithScope(cursor);
    case 0x10:
      return String(view.getInt32(cursor.take(4), true));
    case 0x11: {
      const at = cursor.take(8);
      return `{"$timestamp":{"t":${view.getUint32(at + 4, true)},"i":${view.getUint32(at, true)}}}`;
    }
    case 0x12:
      return String(view.getBigInt64(cursor.take(8), true));
    case 0x13: {
      const at = cursor.take(16);
      return `{"$numberDecimal":"${new Decimal128(cursor.bytes.subarray(at, at + 16))}"}`;
    }
    case 0x7f:
      return '{"$maxKey":1}';
    default:
      return '{"$minKey":1}';
  }
}

function members(cursor: Cursor, isArray: boolean): string {
  const outer = cursor.enter();
  const written: string[] = [];
  for (let type = cursor.next(); type !== 0; type = cursor.next()) {
    const { key, keyEnd } = cursor;
    cursor.checkText(key, keyEnd);
    const value = appendJson(type, cursor);
    written.push(isArray ? value : `${JSON.stringify(platform.decode(cursor.bytes, key, keyEnd))}:${value}`);
  }
  cursor.leave(outer);
  return isArray ? `[${written}]` : `{${written}}`;
}

function codeWithScope(cursor: Cursor): string {
  const { at, end } = cursor;
  const last = cursor.codeWithScope();
  cursor.at = at + 4;
  cursor.end = last;
  const written = `{"$code":${text(cursor)},"$scope":${members(cursor, false)}}`;
  cursor.at = last;
  cursor.end = end;
  return written;
}

function text(cursor: Cursor): string {
  const start = cursor.string();
  cursor.checkText(start, cursor.at - 1);
  return JSON.stringify(platform.decode(cursor.bytes, start, cursor.at - 1));
}

function cText(cursor: Cursor): string {
  const start = cursor.cstring();
  cursor.checkText(start, cursor.at - 1);
  return platform.decode(cursor.bytes, start, cursor.at - 1);
}

function objectId(cursor: Cursor): string {
  const at = cursor.take(12);
  const digits = Array.from(cursor.bytes.subarray(at, at + 12), (byte) => byte.toString(16).padStart(2, "0"));
  return `{"$oid":"${digits.join("")}"}`;
}

function date(milliseconds: bigint): string {
  if (milliseconds < 0n || milliseconds >= LATE) return `{"$date":{"$numberLong":"${milliseconds}"}}`;
  return `{"$date":"${new Date(Number(milliseconds)).toISOString().replace(".000Z", "Z")}"}`;
}

function base64(bytes: Uint8Array, start: number, end: number): string {
  let binary = "";
  for (let at = start; at < end; at++) binary += String.fromCharCode(bytes[at]);
  return btoa(binary);
}

/** As `bsondump` writes it: with an exponent of at least two digits below 0.0001 and from a million on, else with a point. */
function double(number: number): string {
  if (!Number.isFinite(number)) return `{"$numberDouble":"${number}"}`;
  const magnitude = Math.abs(number);
  const sign = number < 0 || Object.is(number, -0) ? "-" : "";
  if (magnitude === 0 || (magnitude >= 1e-4 && magnitude < 1e6)) {
    return `${sign}${magnitude}${Number.isInteger(number) ? ".0" : ""}`;
  }
  const [mantissa, exponent = "0"] = String(magnitude).split("e");
  const [whole, fraction = ""] = mantissa.split(".");
  const all = whole + fraction;
  const digits = all.replace(/^0+/, "");
  const power = Number(exponent) + whole.length - 1 - (all.length - digits.length);
  const short = digits.replace(/0+$/, "");
  const rest = short.length > 1 ? `.${short.slice(1)}` : "";
  return `${sign}${short[0]}${rest}E${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}
