/** A decoded message: the values of each field number in order, integers or bytes. */
export type Fields = ReadonlyMap<number, readonly (bigint | Buffer)[]>;

/** Decodes a message of the protocol buffers wire format. Throws if it is truncated. */
export function readFields(message: Buffer): Fields {
  const fields = new Map<number, (bigint | Buffer)[]>();
  let place = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(place++);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const bytes = (length: number) => {
    if (place + length > message.length) throw new Error("a message of protocol buffers is cut off");
    return message.subarray(place, (place += length));
  };
  while (place < message.length) {
    const key = Number(varint());
    const values = fields.get(key >> 3) ?? [];
    fields.set(key >> 3, values);
    const type = key & 7;
    if (type === 0) values.push(varint());
    else values.push(bytes(type === 2 ? Number(varint()) : type === 1 ? 8 : 4));
  }
  return fields;
}

export function textOf(fields: Fields, number: number): string {
  const value = fields.get(number)?.at(-1);
  return Buffer.isBuffer(value) ? value.toString("utf8") : "";
}

export function flagOf(fields: Fields, number: number): boolean {
  return fields.get(number)?.at(-1) === 1n;
}

export function messagesOf(fields: Fields, number: number): Fields[] {
  return (fields.get(number) ?? []).flatMap((value) => (Buffer.isBuffer(value) ? [readFields(value)] : []));
}

/** Encodes a message whose fields are bytes, strings or integers that are not negative. */
export function writeFields(fields: Readonly<Record<number, string | Buffer | number | bigint>>): Buffer {
  return Buffer.concat(
    Object.entries(fields).flatMap(([number, value]) => {
      const key = Number(number) << 3;
      if (typeof value === "number" || typeof value === "bigint") return [writeVarint(key), writeVarint(value)];
      const content = Buffer.from(value as string);
      return [writeVarint(key | 2), writeVarint(content.length), content];
    }),
  );
}

function writeVarint(value: number | bigint): Buffer {
  const bytes = [];
  let left = BigInt(value);
  for (; left > 0x7fn; left >>= 7n) bytes.push(Number(left & 0x7fn) | 0x80);
  return Buffer.from([...bytes, Number(left)]);
}
