/** Splits a byte stream into git's packets (gitprotocol-common(5)) and passes each to `onPacket`, which returns what takes its place. */
export class PacketMap {
  #rest: Buffer = Buffer.alloc(0);
  #isOver = false;
  readonly #onPacket: (packet: Buffer) => Buffer | "last";

  /** A packet for which `onPacket` returns "last" is the last one to be read: it and all bytes after it stay unchanged. */
  constructor(onPacket: (packet: Buffer) => Buffer | "last") {
    this.#onPacket = onPacket;
  }

  /** Returns the bytes that take the place of these; an incomplete packet waits for its rest. */
  map(chunk: Buffer): Buffer {
    if (this.#isOver) return chunk;
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const mapped: Buffer[] = [];
    while (!this.#isOver && bytes.length >= 4) {
      const length = packetLength(bytes);
      if (length === null) this.#isOver = true;
      else if (bytes.length < length) break;
      else {
        const packet = bytes.subarray(0, length);
        const taken = this.#onPacket(packet);
        this.#isOver = taken === "last";
        mapped.push(taken === "last" ? packet : taken);
        bytes = bytes.subarray(length);
      }
    }
    if (this.#isOver) mapped.push(bytes);
    this.#rest = this.#isOver ? Buffer.alloc(0) : bytes;
    return Buffer.concat(mapped);
  }
}

const headBytes = 4;

/** Returns the length of the packet that begins here, four for a flush; null if this is not a packet. */
function packetLength(bytes: Buffer): number | null {
  const head = bytes.toString("latin1", 0, headBytes);
  if (!/^[0-9a-f]{4}$/.test(head)) return null;
  const length = Number.parseInt(head, 16);
  return length < headBytes ? headBytes : length;
}

/** Returns a packet of git's side band: 1 carries the report, 2 text for the person, 3 a fatal error. */
export function bandPacket(band: 2 | 3, text: string): Buffer {
  const payload = Buffer.from(text);
  const head = (payload.length + headBytes + 1).toString(16).padStart(headBytes, "0");
  return Buffer.concat([Buffer.from(head), Buffer.from([band]), payload]);
}
