/**
 * Kubernetes quantities: "10Gi", "500m", "1.5G", "1e3", or a plain integer.
 *
 * The arithmetic is exact. A fraction of a byte counts as a whole one, as it does everywhere in Kubernetes; a quantity
 * beyond 2^53 - 1 is a problem and never an inexact number.
 */
import { z } from "zod";
import { resourceBounds } from "./bounds.ts";

/** A number, or what is wrong; the problem continues a sentence that begins with the field. */
export type QuantityResult = { readonly ok: true; readonly value: number } | { readonly ok: false; readonly problem: string };

/** The smallest whole number that is at least `quantity`. */
export function wholeQuantity(quantity: string | number): QuantityResult {
  if (typeof quantity === "number") return Number.isSafeInteger(quantity) ? { ok: true, value: quantity } : notExact;
  const match = quantity.length <= resourceBounds.quantityCharsMax ? quantityPattern.exec(quantity) : null;
  if (match === null) return { ok: false, problem: notQuantity };
  const [, sign = "", whole = "", fraction = "", suffix = ""] = match;
  const digits = BigInt(whole + fraction) * (sign === "-" ? -1n : 1n);
  return scaled({ digits, decimals: fraction.length, suffix });
}

/** Bytes as the shortest exact quantity with a binary suffix: 10Gi, 1536Mi, 1000. */
export function bytesText(bytes: number): string {
  const suffix = ["Ei", "Pi", "Ti", "Gi", "Mi", "Ki"].find((unit) => bytes > 0 && bytes % Number(binaryUnits[unit]) === 0);
  return suffix === undefined ? String(bytes) : `${String(bytes / Number(binaryUnits[suffix]))}${suffix}`;
}

const notQuantity = "must be a quantity such as 10Gi, 500M or 1048576";
const suffixSource = "(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?[0-9]{1,2})?";
/** In a dialect that the API server's regular expressions share: no look-ahead. */
const schemaPattern = new RegExp(`^[+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)${suffixSource}$`);

/** Any quantity, kept as it was written: for what is handed on to Kubernetes. */
export const quantity = z.union([z.int(), z.string().max(resourceBounds.quantityCharsMax).regex(schemaPattern, notQuantity)], {
  error: notQuantity,
});

/** A size in bytes, read from a quantity. */
export const byteSize = quantity.transform((value, context): number => {
  const size = wholeQuantity(value);
  if (size.ok && size.value >= resourceBounds.streamBytesMin) return size.value;
  const problem = size.ok ? `must be at least ${bytesText(resourceBounds.streamBytesMin)}` : size.problem;
  context.issues.push({ code: "custom", message: problem, input: value });
  return z.NEVER;
});

function scaled({ digits, decimals, suffix }: { readonly digits: bigint; readonly decimals: number; readonly suffix: string }): QuantityResult {
  const unit = binaryUnits[suffix];
  const exponent = (unit === undefined ? decimalExponent(suffix) : 0) - decimals;
  const numerator = digits * (unit ?? 1n) * (exponent > 0 ? 10n ** BigInt(exponent) : 1n);
  const divisor = exponent < 0 ? 10n ** BigInt(-exponent) : 1n;
  const isFraction = numerator > 0n && numerator % divisor !== 0n;
  const value = Number(numerator / divisor + (isFraction ? 1n : 0n));
  return Number.isSafeInteger(value) ? { ok: true, value } : notExact;
}

function decimalExponent(suffix: string): number {
  const scientific = /^[eE]([+-]?\d+)$/.exec(suffix)?.[1];
  return scientific === undefined ? (decimalExponents[suffix] ?? 0) : Number(scientific);
}

const notExact: QuantityResult = { ok: false, problem: "must not be beyond 2^53 - 1, which is as far as numbers are exact" };
const quantityPattern = new RegExp(`^([+-]?)(?=[.0-9]*[0-9])([0-9]*)(?:\\.([0-9]*))?${suffixSource}$`);
const decimalExponents: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const binaryUnits: Readonly<Record<string, bigint>> = {
  Ki: 1n << 10n, Mi: 1n << 20n, Gi: 1n << 30n, Ti: 1n << 40n, Pi: 1n << 50n, Ei: 1n << 60n,
};
