import { describe, expect, it } from "vitest";
import { bytesText, quantity, wholeQuantity } from "../../src/resource/quantity.ts";

const rows = [
  { text: "10Gi", value: 10 * 2 ** 30, because: "binary suffixes are powers of 1024" },
  { text: "1.5Gi", value: 1.5 * 2 ** 30, because: "a fraction may be a whole number of bytes" },
  { text: ".5Mi", value: 2 ** 19, because: "the whole part may be left out" },
  { text: "2.Mi", value: 2 ** 21, because: "so may the fraction" },
  { text: "500M", value: 500e6, because: "decimal suffixes are powers of 1000" },
  { text: "1e3", value: 1000, because: "an exponent is a suffix too" },
  { text: "12E-1", value: 2, because: "a fraction of a byte counts as one" },
  { text: "500m", value: 1, because: "half a byte counts as one" },
  { text: "1n", value: 1, because: "so does a billionth" },
  { text: "0", value: 0, because: "zero is a quantity" },
  { text: "-1Ki", value: -1024, because: "what is too small is judged by others" },
  { text: "9007199254740991", value: Number.MAX_SAFE_INTEGER, because: "the largest exact number" },
  { text: "+7k", value: 7000, because: "a sign may be written" },
];

const refused = ["", "Gi", "10 Gi", "10GB", "10gi", "ten", ".", "1e", "1e400", "--1", "1Ki1", "8Pi", "9007199254740992", "1".repeat(33)];

describe("wholeQuantity", () => {
  it.each(rows)("reads $text", ({ text, value, because }) => {
    expect(wholeQuantity(text), because).toEqual({ ok: true, value });
  });

  it.each(refused)("refuses %j", (text) => {
    expect(wholeQuantity(text).ok).toBe(false);
  });

  it("takes plain numbers as they are", () => {
    expect([wholeQuantity(1024), wholeQuantity(0.5).ok, wholeQuantity(2 ** 60).ok, wholeQuantity(NaN).ok]).toEqual([{ ok: true, value: 1024 }, false, false, false]);
  });
});

describe("quantity", () => {
  it.each(rows)("accepts $text as the schema writes it", ({ text }) => {
    expect(quantity.safeParse(text).success).toBe(true);
  });

  it.each(refused.filter((text) => !["8Pi", "9007199254740992"].includes(text)))("refuses %j as the schema writes it", (text) => {
    expect(quantity.safeParse(text).success).toBe(false);
  });
});

describe("bytesText", () => {
  it.each([
    { bytes: 10 * 2 ** 30, text: "10Gi" },
    { bytes: 1.5 * 2 ** 30, text: "1536Mi" },
    { bytes: 1000, text: "1000" },
    { bytes: 0, text: "0" },
    { bytes: 2 ** 50, text: "1Pi" },
  ])("writes $bytes as $text, which reads back", ({ bytes, text }) => {
    expect(bytesText(bytes)).toBe(text);
    expect(wholeQuantity(text)).toEqual({ ok: true, value: bytes });
  });
});
