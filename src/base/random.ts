/** Randomness as a dependency, so that a run can be repeated from its seed. */
export interface Random {
  /** Uniform in [0, 1). */
  fraction(): number;
  /** Lower-case base32 text of `length` characters; for incarnations and inbox tokens, never for secrets. */
  token(length: number): string;
}
