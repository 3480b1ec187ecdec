/** Thrown only for bugs: a broken promise between two parts of this program. Nobody catches it to continue. */
export class InvariantError extends Error {
  override readonly name = "InvariantError";
}

/** Throws InvariantError when `condition` is false. `fact` names what should have been true. */
export function assert(condition: boolean, fact: string): asserts condition {
  if (!condition) throw new InvariantError(`expected: ${fact}`);
}

/** Returns `value`, or throws InvariantError when it is null or undefined. `fact` names what should have existed. */
export function present<T>(value: T | null | undefined, fact: string): T {
  if (value === undefined || value === null) throw new InvariantError(`expected: ${fact}`);
  return value;
}

/** Closes an exhaustive switch: a new variant that nobody handles does not compile. */
export function unreachable(value: never): never {
  throw new InvariantError(`unreachable variant: ${JSON.stringify(value)}`);
}
