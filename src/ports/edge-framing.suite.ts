import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { after, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { randomFrom, startRawApp, type EdgeAddress, type RawApp } from "./edge-attack.suite.ts";
import {
  faultsOfResponse,
  readStrictly,
  strangeHttp2Requests,
  strangeRequests,
  strangeResponses,
  type Http2Field,
} from "./edge-framing-cases.suite.ts";
import { say, type Stage } from "./edge-stage.suite.ts";

const waitMs = 400;
const batchSize = 24;

/** Sends bytes and resolves with what arrives until the connection closes or nothing arrives for a while. */
function exchange({ over, ...at }: EdgeAddress, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    const socket: Socket =
      over === "http" ? connect(at) : connectTls({ ...at, servername: "raw.test", rejectUnauthorized: false });
    let received = "";
    socket.setTimeout(waitMs, () => socket.destroy());
    socket.on("data", (chunk: Buffer) => (received += chunk.toString("latin1")));
    socket.on("error", () => {}).on("close", () => resolve(received));
    socket.write(bytes, "latin1");
  });
}

/** Sends one HTTP/2 request with a body of five bytes, and waits a while for what the edge does with it. */
function exchangeHttp2({ host, port }: EdgeAddress, fields: readonly Http2Field[]): Promise<void> {
  const frame = (type: number, flags: number, stream: number, payload: Buffer) => {
    const head = Buffer.alloc(9);
    head.writeUIntBE(payload.length, 0, 3);
    head.writeUInt8(type, 3);
    head.writeUInt8(flags, 4);
    head.writeUInt32BE(stream, 5);
    return Buffer.concat([head, payload]);
  };
  // RFC 7541, section 6.2.2: literals without indexing; lengths from 127 on continue in further bytes.
  const text = (value: string) => {
    const bytes = Buffer.from(value, "latin1");
    const rest = bytes.length - 127;
    return Buffer.concat([Buffer.from(rest < 0 ? [bytes.length] : [127, (rest & 127) | 128, rest >> 7]), bytes]);
  };
  const block = Buffer.concat(fields.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
  return new Promise((resolve) => {
    const socket = connectTls({ host, port, servername: "raw.test", rejectUnauthorized: false, ALPNProtocols: ["h2"] });
    socket.setTimeout(waitMs, () => socket.destroy());
    socket.on("data", () => {});
    socket.on("error", () => {}).on("close", () => resolve());
    const [settings, headers, data, endHeaders, endStream] = [4, 1, 0, 4, 1];
    socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    socket.write(frame(settings, 0, 0, Buffer.alloc(0)));
    socket.write(frame(headers, endHeaders, 1, block));
    socket.write(frame(data, endStream, 1, Buffer.from("hello")));
  });
}

/** A part of the edge's suite: nothing that an edge forwards has two readings, neither of requests nor of responses. */
export function framing(stage: Stage): void {
  const apps: RawApp[] = [];
  after(() => apps.forEach((app) => app.close()));
  const rawApp = async (respond: (socket: Socket, bytes: string) => void) => {
    const app = await startRawApp(respond);
    apps.push(app);
    return app.target;
  };

  /** Sends requests a few at a time beside ordinary visitors; returns what the application got that is ambiguous, and visitors without an answer. */
  async function attack<T>(requests: readonly T[], send: (edge: EdgeAddress, request: T) => Promise<unknown>) {
    const received = new Map<Socket, { text: string; answered: number }>();
    const app = await rawApp((socket, bytes) => {
      const known = received.get(socket) ?? { text: "", answered: 0 };
      known.text += bytes;
      received.set(socket, known);
      for (const { count } = readStrictly(known.text); known.answered < count; known.answered += 1)
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    await stage.serve({ "raw.test": [app] });
    const edge = await stage.address();
    const unanswered: string[] = [];
    for (let from = 0; from < requests.length; from += batchSize) {
      const batch = requests.slice(from, from + batchSize);
      await Promise.all(batch.map((request) => send(edge, request)));
      const visit = await stage.ask({ host: "raw.test", agent: stage.newAgent() }).catch(() => ({ status: 0 }));
      if (visit.status !== 200) unanswered.push(...batch.map((request) => JSON.stringify(request)));
    }
    const faults = [...received.values()].flatMap(({ text }) => {
      const { faults: found } = readStrictly(text);
      return found.length === 0 ? [] : [`${found.join("; ")} in ${JSON.stringify(text.slice(0, 300))}`];
    });
    const forwarded = [...received.values()].filter(({ text }) => text.startsWith("POST ")).length;
    return { faults, unanswered, forwardsSome: forwarded > 0 };
  }

  test("no request that two servers might read differently reaches an application, and the next visitors are served", async (t) => {
    const seed = Date.now() % 2 ** 31;
    t.diagnostic(`seed ${seed}`);
    const seen = await attack(strangeRequests(randomFrom(seed), 100), exchange);
    assert.deepEqual(seen, { faults: [], unanswered: [], forwardsSome: true });
  });

  if (stage.over === "https") {
    test("no such request over HTTP/2 reaches one either", async () => {
      const seen = await attack(strangeHttp2Requests(), exchangeHttp2);
      assert.deepEqual(seen, { faults: [], unanswered: [], forwardsSome: true });
    });
  }

  test("no response that two clients might read differently is passed on", async () => {
    const responses = strangeResponses();
    const app = await rawApp((socket, bytes) => {
      const index = Number(/^GET \/(\d+) /.exec(bytes)?.[1]);
      socket.end(responses[index] ?? "", "latin1");
    });
    await stage.serve({ "raw.test": [app], "good.test": [await stage.app(say("fine"))] });
    const edge = await stage.address();
    const faults: string[] = [];
    for (let from = 0; from < responses.length; from += batchSize) {
      const batch = responses.slice(from, from + batchSize).map(async (response, i) => {
        const got = await exchange(edge, `GET /${from + i} HTTP/1.1\r\nHost: raw.test\r\nConnection: close\r\n\r\n`);
        const found = got === "" ? [] : faultsOfResponse(got);
        if (found.length > 0)
          faults.push(`${found.join("; ")} in ${JSON.stringify(got.slice(0, 300))} for ${JSON.stringify(response)}`);
      });
      await Promise.all(batch);
      assert.equal((await stage.ask({ host: "good.test" })).body, "fine");
    }
    assert.deepEqual(faults, []);
  });
}
