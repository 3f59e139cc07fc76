import assert from "node:assert/strict";
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { createServer, type AddressInfo } from "node:net";
import { test } from "node:test";
import fc from "fast-check";
import { ResponseReader } from "./response-reader.ts";

/** What a reader makes of these bytes, which come in these pieces, after which the connection closes. */
function read(pieces: readonly Buffer[]) {
  const seen = { status: 0, headers: [] as string[], body: "", trailers: [] as string[], end: "none" };
  const reader = new ResponseReader({
    information: () => {},
    head: (head) => void Object.assign(seen, { status: head.status, headers: head.headers }),
    body: (chunk) => void (seen.body += chunk.toString("latin1")),
    end: (trailers) => void Object.assign(seen, { trailers, end: "whole" }),
    broken: (reason) => void (seen.end = reason),
  });
  reader.begin("GET");
  for (const piece of pieces) reader.push(piece);
  reader.close();
  return { ...seen, keepAlive: reader.keepAlive, hintMs: reader.keepAliveHintMs };
}

/** Long runs as their length: else a difference fills the screen. */
const brief = (value: unknown): string => JSON.stringify(value).replace(/x{20,}/g, (run) => `<${run.length} x>`);

const statusLines = ["HTTP/1.1 200 OK", "HTTP/1.1 404", "HTTP/1.0 200 OK", "HTTP/1.1 204 No", "HTTP/1.1 304 Not"];
const early = ["", "", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n"];
const fields = [
  ...["Content-Length: 5", "Content-Length: 0", "content-length:\t5 ", "Transfer-Encoding: chunked"],
  ...[
    "transfer-encoding: Chunked",
    "Transfer-Encoding: gzip, chunked",
    "Connection: close",
    "Connection: X-A, keep-alive",
  ],
  ...["Keep-Alive: timeout=3", "X-A: 1", "Set-Cookie: a=b", "X-Empty:", " folded", "X C: 3", "X-Long: a: b : c"],
];
const bodies = [
  ...["", "hello", "hello, world", "5\r\nhello\r\n0\r\n\r\n", "2;a=b\r\nhi\r\n3 \r\n...\r\n00\r\nX-Sum: 7\r\n\r\n"],
  ...["5\r\nhello\r\n0\r\nContent-Length: 3\r\nX-T: 1\r\n\r\n", "5\r\nhel", "zz\r\n", "0\r\n\r\nbehind"],
];
const damage = ["", "\r", "\n", "\r\n", "\0", " ", ":", "x", "9", "ff"];

/** Answers, most of them nearly sound, with one place spoilt in some. */
const answers = fc
  .record({
    ...{ early: fc.constantFrom(...early), status: fc.constantFrom(...statusLines), body: fc.constantFrom(...bodies) },
    ...{ fields: fc.array(fc.constantFrom(...fields), { maxLength: 4 }), spoilt: fc.boolean() },
    ...{ at: fc.nat(400), cut: fc.nat(3), by: fc.constantFrom(...damage) },
  })
  .map(({ spoilt, at, cut, by, ...parts }) => {
    const text = `${parts.early}${[parts.status, ...parts.fields].join("\r\n")}\r\n\r\n${parts.body}`;
    const place = at % text.length;
    return spoilt ? text.slice(0, place) + by + text.slice(place + cut) : text;
  });

/** Also some whose parts are as long as the limits, give or take a few bytes. */
const longAnswers = fc.record({ extra: fc.integer({ min: -8, max: 8 }), kind: fc.nat(2) }).map(({ extra, kind }) => {
  const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const fill = (most: number, text: string) => "x".repeat(most + extra - text.length);
  if (kind === 0) return `HTTP/1.1 204 No\r\nA: ${fill(65_536, "HTTP/1.1 204 No\r\nA: ")}\r\n\r\n`;
  if (kind === 1) return `${chunked}0\r\nA: ${fill(65_536, "A: ")}\r\n\r\n`;
  return `${chunked}1;${fill(1024, "1;")}\r\na\r\n0\r\n\r\n`;
});

test("an answer is read the same however its bytes are cut", () => {
  const cuts = fc.array(fc.nat(), { maxLength: 12 });
  fc.assert(
    fc.property(
      fc.oneof({ weight: 20, arbitrary: answers }, { weight: 1, arbitrary: longAnswers }),
      cuts,
      (text, at) => {
        const bytes = Buffer.from(text, "latin1");
        const places = [0, ...at.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
        const pieces = places.slice(1).map((place, i) => bytes.subarray(places[i], place));
        assert.equal(brief(read(pieces.filter((piece) => piece.length > 0))), brief(read([bytes])));
      },
    ),
    { numRuns: 3000 },
  );
  // Every single cut of the long ones: their limits lie at certain bytes.
  for (const text of fc.sample(longAnswers, 60)) {
    const bytes = Buffer.from(text, "latin1");
    const whole = read([bytes]);
    for (let tail = 1; tail < 12; tail += 1) {
      const place = bytes.length - tail;
      assert.equal(brief(read([bytes.subarray(0, place), bytes.subarray(place)])), brief(whole));
    }
  }
});

test("what is accepted is read alike by Node's own client", async () => {
  const server = createServer((socket) =>
    socket.on("error", () => {}).once("data", (line) => socket.end(asked.get(pathOf(line)) ?? "")),
  );
  const asked = new Map<string, Buffer>();
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  let compared = 0;
  try {
    await fc.assert(
      fc.asyncProperty(answers, async (text) => {
        const bytes = Buffer.from(text, "latin1");
        const ours = read([bytes]);
        if (ours.end !== "whole") return;
        compared += 1;
        const path = `/${compared}`;
        asked.set(path, bytes);
        const theirs = await askNode(port, path);
        if (typeof theirs === "string") return assert.match(theirs, stricter);
        assert.deepEqual(
          { status: ours.status, body: ours.body, trailers: ours.trailers },
          {
            status: theirs.status,
            body: theirs.body,
            trailers: theirs.trailers.filter((_, i, all) => !isFraming(all, i)),
          },
        );
        assert.ok(isWithin(ours.headers, theirs.headers), JSON.stringify([ours.headers, theirs.headers]));
      }),
      { numRuns: 1500 },
    );
  } finally {
    server.close();
  }
  assert.ok(compared > 100, `only ${compared} answers were accepted`);
});

/** Where Node refuses what RFC 9112 lets us read (§6.1 a length beside chunks, §7.1.1 a blank); none of it goes further. */
const stricter = /can't be present with|Invalid character in chunk (?:size|extensions)/;

const pathOf = (line: Buffer): string => line.toString("latin1").split(" ")[1] as string;

const isFraming = (all: readonly string[], i: number): boolean =>
  /^(content-length|transfer-encoding|host)$/i.test(all[i - (i % 2)] as string);

/** Whether all fields of the one stand in the other, in the same order. */
function isWithin(some: readonly string[], all: readonly string[]): boolean {
  let at = 0;
  for (let i = 0; i < all.length; i += 2) if (some[at] === all[i] && some[at + 1] === all[i + 1]) at += 2;
  return at === some.length;
}

/** What Node's client makes of the answer; its reason when it refuses it. */
function askNode(port: number, path: string) {
  const answer = (response: IncomingMessage, body: string) => {
    const { statusCode, rawHeaders, rawTrailers } = response;
    return { status: statusCode, headers: rawHeaders, body, trailers: rawTrailers };
  };
  return new Promise<ReturnType<typeof answer> | string>((resolve) => {
    const asking = request({ host: "127.0.0.1", port, path, agent: false }, (response) => {
      let body = "";
      response.setEncoding("latin1").on("data", (chunk: string) => (body += chunk));
      response.on("end", () => resolve(answer(response, body))).on("error", () => {});
    });
    asking.on("error", (error) => resolve(error.message)).end();
  });
}
