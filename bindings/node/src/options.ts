/** Checks options: JavaScript accepts any value, and a misspelt option must not be ignored silently.
 *
 * Each set of options has a table of rules next to its type, and each public function that takes options first checks
 * them here: an unknown name or an invalid value is a `TypeError` of kind `invalid_option` before anything is opened.
 */

import { misuse } from "./error.js";
import { INVALID_OPTION } from "./errors.js";

/** The valid values of an option. `undefined` is always allowed and means that the option was not given. */
export interface Rule {
  readonly expected: string;
  accepts(value: any): boolean;
}

/** A rule for each option. If one is missing, the code does not compile. */
export type Rules<O> = { readonly [name in keyof Required<O>]: Rule };

/** Joins rules. Unlike a spread, bundlers omit it if the result is unused. */
// @__NO_SIDE_EFFECTS__
export function rules<A extends object, B extends object, C extends object>(a: A, b: B, c = {} as C): A & B & C {
  return { ...a, ...b, ...c };
}

/** Throws unless all options are known and each has a valid value. */
export function checkOptions<O extends object>(call: string, options: O, rules: Rules<O>): void {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw misuse({ stream: call, found: show(options), expected: "an object with options" }, INVALID_OPTION);
  }
  const names = Object.keys(rules);
  for (const name of Object.keys(options)) {
    if (names.includes(name)) continue;
    const found = `the option ${JSON.stringify(name)}`;
    throw misuse({ stream: call, found, expected: `one of ${names.join(", ")}` }, INVALID_OPTION);
  }
  for (const name of names as (keyof O & string)[]) checkOption(call, name, options[name], rules[name]);
}

/** Throws unless the value is valid for this option or argument. */
export function checkOption(call: string, name: string, value: unknown, { expected, accepts }: Rule): void {
  if (value === undefined || accepts(value)) return;
  throw misuse({ stream: call, found: `${name}: ${show(value)}`, expected }, INVALID_OPTION);
}

/** Throws if both options are given, because one of them would have no effect. */
export function refuseTogether<O extends object>(
  call: string,
  options: O,
  one: keyof O & string,
  other: keyof O & string,
) {
  if (options[one] === undefined || options[other] === undefined) return;
  throw misuse({ stream: call, found: `${one} together with ${other}`, expected: "one of them" }, INVALID_OPTION);
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

/** A rule for one of these words. */
// @__NO_SIDE_EFFECTS__
export function word(...words: readonly string[]): Rule {
  const quoted = words.map((each) => JSON.stringify(each));
  const expected = [quoted.slice(0, -1).join(", "), quoted.at(-1)].filter(Boolean).join(" or ");
  return { expected, accepts: (value) => words.includes(value) };
}

/** A rule for a whole number between two limits. */
// @__NO_SIDE_EFFECTS__
export function whole(least: number, most = Number.MAX_SAFE_INTEGER): Rule {
  const range = most === Number.MAX_SAFE_INTEGER ? `${least} or more` : `${least} to ${most}`;
  return {
    expected: `a whole number, ${range}`,
    accepts: (value) => Number.isSafeInteger(value) && value >= least && value <= most,
  };
}

/** A rule for an array of whole numbers. */
export const wholes: Rule = {
  expected: "an array of whole numbers",
  accepts: (value) => Array.isArray(value) && value.every(Number.isSafeInteger),
};

/** A rule for a number with a lower limit, which need not be whole. */
// @__NO_SIDE_EFFECTS__
export function number(least: number): Rule {
  return { expected: `a number, ${least} or more`, accepts: (value) => typeof value === "number" && value >= least };
}

/** A rule for values that either rule accepts. */
// @__NO_SIDE_EFFECTS__
export function either(one: Rule, other: Rule): Rule {
  return {
    expected: `${one.expected}, or ${other.expected}`,
    accepts: (value) => one.accepts(value) || other.accepts(value),
  };
}

export const boolean: Rule = { expected: "true or false", accepts: (value) => typeof value === "boolean" };

export const text: Rule = { expected: "a string", accepts: (value) => typeof value === "string" };

export const textOrBytes: Rule = {
  expected: "a string or a Uint8Array",
  accepts: (value) => typeof value === "string" || value instanceof Uint8Array,
};

export const callable: Rule = { expected: "a function", accepts: (value) => typeof value === "function" };

/** An `AbortSignal` from any realm. */
export const abortSignal: Rule = {
  expected: "an AbortSignal",
  accepts: (value) => typeof value === "object" && value !== null && "aborted" in value && "addEventListener" in value,
};

/** A size in bytes without an upper limit. */
export const limit: Rule = either(whole(1), { expected: "Infinity", accepts: (value) => value === Infinity });

/** Returns the argument if it is a function; otherwise throws. */
export function checkedFunction<F>(f: F): F {
  if (typeof f === "function") return f;
  throw misuse({ found: f === null ? "null" : typeof f, expected: "a function" });
}
