/** Checks options: JavaScript accepts any value, and a misspelt option must not be ignored silently.
 *
 * Each set of options has a table of rules next to its type, and each public function that takes options first checks
 * them here: an unknown name or an invalid value is a `TypeError` of kind `invalid_option` before anything is opened.
 */

import { type MillstreamError, misuse } from "./error.js";
import { INVALID_OPTION } from "./errors.js";

/** A check of a value. */
export interface Check {
  readonly expected: string;
  accepts(value: any): boolean;
}

/** The valid values of an option: a check, or several words and checks. `undefined` is always allowed and means that the
 * option was not given. Rules are plain data, because bundlers omit data that is not used, but hardly any call.
 */
export type Rule = Check | readonly (string | Check)[];

/** A rule for each option. If one is missing, the code does not compile. */
export type Rules<O> = { readonly [name in keyof Required<O>]: Rule };

/** Tables that have a rule for each option together. */
export type Tables<O> = readonly { readonly [name in keyof O]?: Rule }[];

/** Throws unless all options are known and each has a valid value. */
export function checkOptions<O extends object>(call: string, options: O, tables: Tables<O>): void {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw refused(call, show(options), "an object with options", "pass options as `{ name: value }`");
  }
  const rules: Record<string, Rule> = Object.assign({}, ...tables);
  for (const name of Object.keys(options)) {
    if (name in rules) continue;
    const expected = `one of ${Object.keys(rules).join(", ")}`;
    throw refused(call, `the option ${JSON.stringify(name)}`, expected, "correct its name, or remove it");
  }
  for (const name in rules) checkOption(call, name, options[name as keyof O], rules[name]);
}

/** Throws unless the value is valid for this option or argument. */
export function checkOption(call: string, name: string, value: unknown, rule: Rule): void {
  const choices = [rule].flat();
  const accepts = (choice: string | Check) => (typeof choice === "string" ? choice === value : choice.accepts(value));
  if (value === undefined || choices.some(accepts)) return;
  const texts = choices.map((choice) => (typeof choice === "string" ? JSON.stringify(choice) : choice.expected));
  const last = texts.pop();
  const expected = texts.length > 0 ? `${texts.join(", ")} or ${last}` : last;
  throw refused(call, `${name}: ${show(value)}`, expected, `change \`${name}\``);
}

/** Throws if both options are given, because one of them would have no effect. */
export function refuseTogether<O extends object>(
  call: string,
  options: O,
  one: keyof O & string,
  other: keyof O & string,
) {
  if (options[one] === undefined || options[other] === undefined) return;
  throw refused(call, `${one} together with ${other}`, "one of them", "remove the other");
}

function refused(stream: string, found: string, expected: string | undefined, advice: string): MillstreamError {
  return misuse({ stream, found, expected }, { ...INVALID_OPTION, advice });
}

/** Formats a value for a message. */
export function show(value: unknown): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
    case "function":
      return "a function";
    case "bigint":
      return `${value}n`;
    case "object":
      if (value === null) return "null";
      return Array.isArray(value) ? "an array" : `an object of ${value.constructor?.name ?? "no class"}`;
    default:
      return String(value);
  }
}

/** A check for whole numbers between two limits. */
export function range(least: number, most = Number.MAX_SAFE_INTEGER): Check {
  return {
    expected: `a whole number, ${most === Number.MAX_SAFE_INTEGER ? `${least} or more` : `${least} to ${most}`}`,
    accepts: (value) => Number.isSafeInteger(value) && value >= least && value <= most,
  };
}

export const WHOLE: Check = {
  expected: "a whole number, 0 or more",
  accepts: (value) => Number.isSafeInteger(value) && value >= 0,
};

export const POSITIVE: Check = {
  expected: "a whole number, 1 or more",
  accepts: (value) => Number.isSafeInteger(value) && value > 0,
};

export const WHOLES: Check = {
  expected: "an array of whole numbers",
  accepts: (value) => Array.isArray(value) && value.every(Number.isSafeInteger),
};

export const NUMBER: Check = {
  expected: "a number, 0 or more",
  accepts: (value) => typeof value === "number" && value >= 0,
};

export const INFINITE: Check = { expected: "Infinity", accepts: (value) => value === Number.POSITIVE_INFINITY };

export const FLAG: Check = { expected: "true or false", accepts: (value) => typeof value === "boolean" };

export const TEXT: Check = { expected: "a string", accepts: (value) => typeof value === "string" };

export const TEXT_OR_BYTES: Check = {
  expected: "a string or a Uint8Array",
  accepts: (value) => typeof value === "string" || value instanceof Uint8Array,
};

export const FUNCTION: Check = { expected: "a function", accepts: (value) => typeof value === "function" };

/** An `AbortSignal` from any realm. */
export const SIGNAL: Check = {
  expected: "an AbortSignal",
  accepts: (value) => typeof value === "object" && value !== null && "aborted" in value && "addEventListener" in value,
};

/** Returns the argument if it is a function; otherwise throws. */
export function checkedFunction<F>(f: F): F {
  if (typeof f === "function") return f;
  throw misuse({ found: f === null ? "null" : typeof f, expected: "a function" });
}
