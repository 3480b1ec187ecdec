/**
 * A small JSON reader for untrusted control context.
 *
 * `JSON.parse` hides duplicate keys, loses integers beyond 2^53 and nests without bound; two readers of one message
 * could then disagree about what it says. This one accepts printable ASCII only and bounds depth and keys. It never
 * throws: the result names what is wrong and where. Grammar: RFC 8259, with numbers restricted to safe integers.
 */

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** Bounds of what is read: levels of nesting, and keys and elements all together. */
export type JsonLimits = { readonly depthMax: number; readonly keyCountMax: number };

export type JsonResult =
  | { readonly ok: true; readonly value: JsonValue }
  /** `problem` is a phrase for people; `path` is dotted, empty at the top. */
  | { readonly ok: false; readonly problem: string; readonly path: string };

/** Reads one JSON value that fills `text`. */
export function readBoundedJson(text: string, limits: JsonLimits): JsonResult {
  const outside = notPrintableAscii.exec(text);
  if (outside !== null) {
    return { ok: false, problem: `contains a character outside printable ASCII at offset ${String(outside.index)}; write it as \\u`, path: "" };
  }
  const reader = new Reader(text, limits);
  try {
    return { ok: true, value: reader.readDocument() };
  } catch (error) {
    if (error instanceof JsonProblem) return { ok: false, problem: error.message, path: reader.path() };
    throw error;
  }
}

/** Private control flow of this file; never leaves it. */
class JsonProblem extends Error {}

class Reader {
  readonly #text: string;
  readonly #limits: JsonLimits;
  readonly #path: string[] = [];
  #at = 0;
  #keyCount = 0;

  constructor(text: string, limits: JsonLimits) {
    this.#text = text;
    this.#limits = limits;
  }

  path(): string {
    return this.#path.join(".");
  }

  readDocument(): JsonValue {
    this.#skipSpace();
    const value = this.#readValue(0);
    this.#skipSpace();
    if (this.#at !== this.#text.length) throw new JsonProblem(`has text after its end at offset ${String(this.#at)}`);
    return value;
  }

  #readValue(depth: number): JsonValue {
    if (depth > this.#limits.depthMax) throw new JsonProblem(`nests deeper than ${String(this.#limits.depthMax)} levels`);
    const char = this.#text[this.#at];
    if (char === "{") return this.#readObject(depth);
    if (char === "[") return this.#readArray(depth);
    if (char === '"') return this.#readString();
    return this.#readLiteral();
  }

  #readObject(depth: number): JsonValue {
    const object: Record<string, JsonValue> = Object.create(null) as Record<string, JsonValue>;
    this.#at += 1;
    this.#skipSpace();
    if (this.#take("}")) return object;
    for (;;) {
      if (this.#text[this.#at] !== '"') throw new JsonProblem(`needs a quoted key at offset ${String(this.#at)}`);
      const key = this.#readString();
      this.#path.push(key);
      this.#countKey();
      if (key in object) throw new JsonProblem("occurs twice");
      this.#skipSpace();
      this.#expect(":");
      this.#skipSpace();
      object[key] = this.#readValue(depth + 1);
      this.#path.pop();
      this.#skipSpace();
      if (this.#take("}")) return object;
      this.#expect(",");
      this.#skipSpace();
    }
  }

  #readArray(depth: number): JsonValue {
    const array: JsonValue[] = [];
    this.#at += 1;
    this.#skipSpace();
    if (this.#take("]")) return array;
    for (;;) {
      this.#path.push(String(array.length));
      this.#countKey();
      array.push(this.#readValue(depth + 1));
      this.#path.pop();
      this.#skipSpace();
      if (this.#take("]")) return array;
      this.#expect(",");
      this.#skipSpace();
    }
  }

  #readString(): string {
    stringToken.lastIndex = this.#at;
    const token = stringToken.exec(this.#text)?.[0];
    if (token === undefined) throw new JsonProblem(`has a malformed string at offset ${String(this.#at)}`);
    this.#at += token.length;
    const value = JSON.parse(token) as string;
    if (loneSurrogate.test(value)) throw new JsonProblem("contains half of a surrogate pair");
    return value;
  }

  #readLiteral(): JsonValue {
    literalToken.lastIndex = this.#at;
    const token = literalToken.exec(this.#text)?.[0];
    if (token === undefined) throw new JsonProblem(`is not JSON at offset ${String(this.#at)}`);
    this.#at += token.length;
    if (token === "null") return null;
    if (token === "true" || token === "false") return token === "true";
    const value = Number(token);
    if (!Number.isSafeInteger(value) || Object.is(value, -0) || !integerToken.test(token)) {
      throw new JsonProblem("is not an integer between -(2^53 - 1) and 2^53 - 1");
    }
    return value;
  }

  #countKey(): void {
    this.#keyCount += 1;
    if (this.#keyCount > this.#limits.keyCountMax) throw new JsonProblem(`has more than ${String(this.#limits.keyCountMax)} keys`);
  }

  #skipSpace(): void {
    while (this.#text[this.#at] === " ") this.#at += 1;
  }

  #take(char: string): boolean {
    if (this.#text[this.#at] !== char) return false;
    this.#at += 1;
    return true;
  }

  #expect(char: string): void {
    if (!this.#take(char)) throw new JsonProblem(`needs ${char} at offset ${String(this.#at)}`);
  }
}

const notPrintableAscii = /[^\x20-\x7e]/;
const stringToken = /"(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const literalToken = /(?:null|true|false|-?[0-9][0-9.eE+-]*)/y;
const integerToken = /^-?(?:0|[1-9][0-9]*)$/;
const loneSurrogate = /\p{Cs}/u;

/** Compact JSON in ASCII: every other character as `\u`, so that it survives any header transport. */
export function writeAsciiJson(value: JsonValue): string {
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
