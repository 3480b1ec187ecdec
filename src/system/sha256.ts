import { hash } from "node:crypto";
import type { Sha256 } from "../base/sha256.ts";

/** SHA-256 by Node's one-shot function, which spares the stream object that createHash makes for each call. */
export const systemSha256: Sha256 = (bytes) => hash("sha256", bytes, "buffer");
