/** SHA-256 of `bytes`: 32 bytes. A parameter of the pure rooms, which may not import Node's crypto. */
export type Sha256 = (bytes: Uint8Array) => Uint8Array;
