import assert from "node:assert/strict";
import type { RequestListener } from "node:http";
import { after, test } from "node:test";
import {
  randomFrom,
  startChunkFlood,
  startHostileApp,
  startHostileTraffic,
  startRawApp,
  startSilentReaders,
  visitNeighbour,
  type RawApp,
} from "./edge-attack.suite.ts";
import type { Stage } from "./edge-stage.suite.ts";

/** What a client may get for one response: one of these statuses with this body, or `cut`, a connection that breaks off. */
interface Outcome {
  readonly statuses: readonly number[];
  readonly body?: string;
  readonly cut?: boolean;
  /** An edge that does not check responses this strictly may forward it; the client then rejects it. */
  readonly mayPass?: boolean;
}

const ok = "HTTP/1.1 200 OK\r\n";
const chunked = `${ok}Transfer-Encoding: chunked\r\n`;
const hostile: readonly (readonly [what: string, bytes: string, outcome: Outcome])[] = [
  ["a control character in its reason", "HTTP/1.1 200 O\x01K\r\nContent-Length: 2\r\n\r\nok", { statuses: [200, 502] }],
  [
    "a control character in a field",
    `${ok}X-A: a\x01b\r\nContent-Length: 2\r\n\r\nok`,
    { statuses: [200, 502], mayPass: true },
  ],
  ["a field without end", `${ok}X-A: ${"a".repeat(300_000)}`, { statuses: [502] }],
  ["a head of 60 KiB", `${ok}X-A: ${"a".repeat(60_000)}\r\nContent-Length: 2\r\n\r\nok`, { statuses: [502] }],
  ["3,000 fields", `${ok}${"a: b\r\n".repeat(3000)}Content-Length: 2\r\n\r\nok`, { statuses: [502] }],
  ["fields without end", `${ok}${"a: b\r\n".repeat(60_000)}`, { statuses: [502] }],
  ["a flood of interim answers", "HTTP/1.1 103 Hint\r\n\r\n".repeat(20_000), { statuses: [502], mayPass: true }],
  [
    "an upgrade without a request for it",
    "HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    { statuses: [502] },
  ],
  ["a status below 100", "HTTP/1.1 000 No\r\nContent-Length: 0\r\n\r\n", { statuses: [502], mayPass: true }],
  ["another protocol", "SSH-2.0-OpenSSH_9.2\r\n", { statuses: [502] }],
  ["two lengths", `${ok}Content-Length: 2\r\nContent-Length: 3\r\n\r\nokk`, { statuses: [502] }],
  ["a length and chunks", `${chunked}Content-Length: 3\r\n\r\n2\r\nok\r\n0\r\n\r\n`, { statuses: [200, 502] }],
  ["an end in its head", `${ok}Content-Le`, { statuses: [502] }],
  ["an end in its body", `${ok}Content-Length: 9\r\n\r\nok`, { statuses: [], cut: true }],
  ["an end in a chunk", `${chunked}\r\n9\r\nok`, { statuses: [], cut: true }],
  ["a malformed chunk", `${chunked}\r\n2\r\nok\r\nzz\r\n`, { statuses: [502], cut: true }],
  ["more than its length", `${ok}Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n`, { statuses: [200], body: "ok" }],
  ["trailers without end", `${chunked}\r\n0\r\n${"a: b\r\n".repeat(60_000)}`, { statuses: [200, 502], cut: true }],
  ["garbage behind its chunks", `${chunked}\r\n2\r\nok\r\n0\r\n\r\ngarbage`, { statuses: [200], body: "ok" }],
  ["a body where none may be", "HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\nok", { statuses: [204, 502], body: "" }],
  [
    "one-byte chunks",
    `${chunked}\r\n${"1\r\nx\r\n".repeat(10_000)}0\r\n\r\n`,
    { statuses: [200], body: "x".repeat(10_000) },
  ],
];

const fine: RequestListener = (_request, response) => void response.end("fine");

/**
 * A part of the edge's suite: an application can break only its own responses. `peakMemoryMb` reads the peak memory of the edge's
 * processes.
 */
export function hostility(stage: Stage, peakMemoryMb: () => Promise<number>): void {
  const apps: RawApp[] = [];
  after(() => apps.forEach((app) => app.close()));
  const rawApp = async (starting: Promise<RawApp>) => {
    const app = await starting;
    apps.push(app);
    return app.target;
  };

  for (const [what, bytes, outcome] of hostile) {
    test(`an application that answers with ${what} breaks no more than that answer`, async () => {
      const answering = await rawApp(startRawApp((socket) => void socket.end(bytes, "latin1")));
      await stage.serve({ "bad.test": [answering], "good.test": [await stage.app(fine)] });
      for (let i = 0; i < 3; i += 1) {
        const answer = await stage.ask({ host: "bad.test", agent: stage.agentForFailures() }).catch(() => undefined);
        const passed = outcome.mayPass === true && stage.allows.passesBrokenHeads === true;
        if (answer === undefined || answer.status < 100)
          assert.ok(outcome.cut === true || passed, "the answer was cut");
        else assert.ok(outcome.statuses.includes(answer.status), `status ${answer.status}`);
        if (answer?.status === 200 && outcome.body !== undefined) assert.equal(answer.body, outcome.body);
        assert.equal((await stage.ask({ host: "good.test" })).body, "fine");
      }
    });
  }

  test("trailers and their announcement reach the client", async () => {
    const bytes = `${chunked}Trailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n`;
    await stage.serve({ "trail.test": [await rawApp(startRawApp((socket) => void socket.write(bytes)))] });
    const response = await stage.open_({ host: "trail.test" });
    const chunks: Buffer[] = [];
    for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
    assert.deepEqual(
      [response.statusCode, Buffer.concat(chunks).toString(), response.headers.trailer, response.trailers["x-sum"]],
      [200, "ok", "X-Sum", "7"],
    );
    assert.equal((await stage.ask({ host: "trail.test", method: "HEAD" })).status, 200);
  });

  test("hostile answers and clients that do not read cost a neighbour no request and little memory", async (t) => {
    const seed = Date.now() % 2 ** 31;
    t.diagnostic(`seed ${seed}`);
    const random = randomFrom(seed);
    const [flood, bad] = [await rawApp(startChunkFlood()), await rawApp(startHostileApp(random))];
    await stage.serve({ "flood.test": [flood], "bad.test": [bad], "good.test": [await stage.app(fine)] });
    const edge = await stage.address();
    const stopTraffic = startHostileTraffic(edge, "bad.test", random);
    for (const readers of [40, 200]) {
      const stopReaders = startSilentReaders(edge, "flood.test", readers);
      const { failures, latenciesMs } = await visitNeighbour(edge, "good.test", 2000);
      stopReaders();
      assert.deepEqual(failures, []);
      t.diagnostic(`${readers} readers: p99 ${latenciesMs[Math.floor(latenciesMs.length * 0.99)]?.toFixed(1)} ms`);
    }
    t.diagnostic(`${await stopTraffic()} hostile answers, ${await peakMemoryMb()} MB`);
    assert.ok((await peakMemoryMb()) < 300, `the edge took ${await peakMemoryMb()} MB`);
  });
}
