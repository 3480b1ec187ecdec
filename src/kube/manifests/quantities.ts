/**
 * Compares Kubernetes quantities by value. The API server stores them in a spelling of its own ("1024Mi" becomes "1Gi"), so
 * that what was sent and what is read back differ as text.
 */

/** True when both are quantities of the same value. */
export function isSameQuantity(a: unknown, b: unknown): boolean {
  const [left, right] = [nanosOf(a), nanosOf(b)];
  return left !== undefined && left === right;
}

/** The value in billionths, which is as fine as quantities get; undefined for anything else. */
function nanosOf(value: unknown): bigint | undefined {
  if (typeof value !== "string" && typeof value !== "number") return undefined;
  const { whole = "", fraction = "", suffix = "" } = pattern.exec(String(value))?.groups ?? {};
  return whole + fraction === "" ? undefined : scaled(BigInt(whole + fraction), fraction.length, suffix);
}

function scaled(digits: bigint, decimals: number, suffix: string): bigint {
  const unit = binaryUnits[suffix];
  const exponent = 9 - decimals + (unit === undefined ? decimalExponent(suffix) : 0);
  const units = digits * (unit ?? 1n);
  return exponent >= 0 ? units * 10n ** BigInt(exponent) : units / 10n ** BigInt(-exponent);
}

function decimalExponent(suffix: string): number {
  const scientific = /^[eE]([+-]?\d+)$/.exec(suffix)?.[1];
  return scientific === undefined ? (decimalExponents[suffix] ?? 0) : Number(scientific);
}

/** Resources of a container are never negative. */
const pattern = /^\+?(?<whole>\d{0,32})(?:\.(?<fraction>\d{0,32}))?(?<suffix>Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?\d{1,2})?$/;
const decimalExponents: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const binaryUnits: Readonly<Record<string, bigint>> = {
  Ki: 1n << 10n, Mi: 1n << 20n, Gi: 1n << 30n, Ti: 1n << 40n, Pi: 1n << 50n, Ei: 1n << 60n,
};
