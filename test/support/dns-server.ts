import { createSocket, type Socket } from "node:dgram";
import { createServer, type AddressInfo, type Server } from "node:net";

/** A record of a zone; a TXT record may have several parts of at most 255 bytes. */
export type DnsRecord =
  | { readonly type: "A" | "AAAA" | "CNAME"; readonly value: string }
  /** The value of an `issue` record. */
  | { readonly type: "CAA"; readonly value: string }
  | { readonly type: "TXT"; readonly value: string | readonly string[] };

/** How the server misbehaves for a name. */
export type DnsFault = "silent" | "servfail" | "refused" | "garbage";

/** An authoritative DNS server on loopback, over UDP and TCP, whose zone a test may change at any time. */
export interface TestDnsServer extends AsyncDisposable {
  /** `127.0.0.1:port`. */
  readonly address: string;
  /** Replaces all records of a name; without records the name does not exist. `*.zone` matches every name directly below that has no records. */
  set(hostname: string, ...records: readonly DnsRecord[]): void;
  fail(hostname: string, fault: DnsFault): void;
  /** Received queries with type and transport: `A app.test udp`. */
  readonly asked: readonly string[];
  close(): Promise<void>;
}

type Zone = Map<string, readonly DnsRecord[] | DnsFault>;

/** Starts a DNS server on a free port. */
export async function startDnsServer(): Promise<TestDnsServer> {
  const zone: Zone = new Map();
  const asked: string[] = [];
  const { udp, tcp, port } = await bindBoth(zone, asked);
  const close = async () => {
    await Promise.all([
      new Promise<void>((done) => udp.close(done)),
      new Promise<void>((done) => tcp.close(() => done())),
    ]);
  };
  return {
    address: `127.0.0.1:${port}`,
    asked,
    set: (hostname, ...records) => void zone.set(hostname.toLowerCase(), records),
    fail: (hostname, fault) => void zone.set(hostname.toLowerCase(), fault),
    close,
    [Symbol.asyncDispose]: close,
  };
}

// The port that TCP got may be in use for UDP.
async function bindBoth(zone: Zone, asked: string[]): Promise<{ udp: Socket; tcp: Server; port: number }> {
  for (let attempt = 0; ; attempt += 1) {
    const tcp = serveTcp(zone, asked);
    await new Promise<void>((done) => tcp.listen(0, "127.0.0.1", done));
    const { port } = tcp.address() as AddressInfo;
    const udp = serveUdp(zone, asked);
    const isBound = await new Promise<boolean>((done) => {
      udp.once("error", () => done(false));
      udp.bind(port, "127.0.0.1", () => done(true));
    });
    if (isBound) return { udp, tcp, port };
    tcp.close();
    if (attempt === 10) throw new Error("no port was free in both UDP and TCP");
  }
}

function serveUdp(zone: Zone, asked: string[]): Socket {
  const udp = createSocket("udp4");
  udp.on("message", (message, from) => {
    const answer = answerTo(zone, asked, message, "udp");
    if (answer !== undefined) udp.send(answer, from.port, from.address);
  });
  return udp;
}

function serveTcp(zone: Zone, asked: string[]): Server {
  return createServer((socket) => {
    let pending = Buffer.alloc(0);
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      pending = Buffer.concat([pending, chunk]);
      while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
        const end = 2 + pending.readUInt16BE(0);
        const answer = answerTo(zone, asked, pending.subarray(2, end), "tcp");
        pending = pending.subarray(end);
        if (answer !== undefined) socket.write(Buffer.concat([uint16(answer.length), answer]));
      }
    });
  });
}

const typeNumbers = { A: 1, CNAME: 5, TXT: 16, AAAA: 28, CAA: 257 } as const;
const rcodes = { ok: 0, servfail: 2, nxdomain: 3, refused: 5 } as const;
// RFC 1035 §4.2.1. A larger response to a client that announces a larger size is allowed, but not required.
const udpBytes = 512;

function answerTo(zone: Zone, asked: string[], query: Buffer, transport: "udp" | "tcp"): Buffer | undefined {
  const { name, type, end } = readQuestion(query);
  asked.push(`${typeName(type)} ${name} ${transport}`);
  const known = lookUp(zone, name);
  if (known === "silent") return undefined;
  if (known === "garbage") return Buffer.from("this is not DNS");
  const question = query.subarray(12, end);
  if (known === "servfail" || known === "refused")
    return message(query, question, { rcode: rcodes[known], answers: [] });
  const answers = recordsFor(zone, name, type);
  const rcode = known === undefined || known.length === 0 ? rcodes.nxdomain : rcodes.ok;
  const whole = message(query, question, { rcode, answers });
  if (transport === "tcp" || whole.length <= udpBytes) return whole;
  return message(query, question, { rcode, answers: [], truncated: true });
}

function lookUp(zone: Zone, name: string) {
  return zone.get(name) ?? zone.get(name.replace(/^[^.]*/, "*"));
}

/** The records of this type, including those behind CNAME records. */
function recordsFor(zone: Zone, name: string, type: number, depth = 0): Buffer[] {
  const records = lookUp(zone, name);
  if (!Array.isArray(records) || depth > 8) return [];
  return (records as readonly DnsRecord[]).flatMap((record) => {
    if (typeNumbers[record.type] === type) return [recordBytes(name, record)];
    if (record.type !== "CNAME") return [];
    return [recordBytes(name, record), ...recordsFor(zone, record.value.toLowerCase(), type, depth + 1)];
  });
}

function message(
  query: Buffer,
  question: Buffer,
  answer: { rcode: number; answers: readonly Buffer[]; truncated?: boolean },
): Buffer {
  // The flags QR, AA, RD and RA.
  const flags = 0x8580 | (answer.truncated === true ? 0x0200 : 0) | answer.rcode;
  const counts = [1, answer.answers.length, 0, 0].map(uint16);
  return Buffer.concat([query.subarray(0, 2), uint16(flags), ...counts, question, ...answer.answers]);
}

function recordBytes(name: string, record: DnsRecord): Buffer {
  const content = contentBytes(record);
  const head = [nameBytes(name), uint16(typeNumbers[record.type]), uint16(1), Buffer.alloc(4), uint16(content.length)];
  return Buffer.concat([...head, content]);
}

function contentBytes(record: DnsRecord): Buffer {
  switch (record.type) {
    case "A":
      return Buffer.from(record.value.split(".").map(Number));
    case "AAAA":
      return ipv6Bytes(record.value);
    case "CNAME":
      return nameBytes(record.value);
    case "CAA":
      return Buffer.concat([Buffer.from([0, 5]), Buffer.from(`issue${record.value}`)]);
    case "TXT":
      return Buffer.concat(
        [record.value].flat().map((part) => Buffer.concat([Buffer.from([part.length]), Buffer.from(part)])),
      );
  }
}

function ipv6Bytes(address: string): Buffer {
  const [left = "", right] = address.split("::");
  const groups = (text: string) => (text === "" ? [] : text.split(":"));
  const tail = right === undefined ? [] : groups(right);
  const gap = Array.from({ length: 8 - groups(left).length - tail.length }, () => "0");
  return Buffer.concat([...groups(left), ...gap, ...tail].map((group) => uint16(Number.parseInt(group, 16))));
}

function nameBytes(name: string): Buffer {
  const labels = name.split(".").filter((label) => label !== "");
  return Buffer.concat([
    ...labels.map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)])),
    Buffer.from([0]),
  ]);
}

function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function typeName(type: number): string {
  return Object.entries(typeNumbers).find(([, number]) => number === type)?.[0] ?? String(type);
}

function uint16(value: number): Buffer {
  return Buffer.from([value >> 8, value & 0xff]);
}
