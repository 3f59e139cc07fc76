import assert from "node:assert/strict";
import { once } from "node:events";
import { after, test } from "node:test";
import { startRawApp, type RawApp } from "../../ports/edge-attack.suite.ts";
import { UpstreamConnection, type AnswerReceiver } from "./upstream-connection.ts";

const apps: RawApp[] = [];
after(() => apps.forEach((app) => app.close()));

const get = { method: "GET", path: "/", fields: "Host: one.test\r\n", body: "none" } as const;
const sound = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/** A connection to an application that answers each request with these bytes. */
async function connectTo(bytes: string): Promise<UpstreamConnection> {
  const app = await startRawApp((socket) => void socket.write(bytes, "latin1"));
  apps.push(app);
  const connection = new UpstreamConnection(false);
  connection.socket.connect(app.target);
  await once(connection.socket, "connect");
  return connection;
}

interface Answer {
  status: number;
  body: string;
  outcome: string;
}

/** Sends a request; resolves when its answer has ended, complete or not. */
function ask(connection: UpstreamConnection, also: Partial<AnswerReceiver> = {}): Promise<Answer> {
  const answer: Answer = { status: 0, body: "", outcome: "" };
  return new Promise((resolve) => {
    connection.send(get, {
      answerBegan: (status) => void (answer.status = status),
      answerCame: (chunk) => void (answer.body += chunk.toString("latin1")),
      answerEnded: () => resolve({ ...answer, outcome: "whole" }),
      answerFailed: ({ message }) => resolve({ ...answer, outcome: message }),
      ...also,
    });
  });
}

test("a paused answer stops in the middle of what was read, and goes on where it stopped", async () => {
  const chunks = 3000;
  const connection = await connectTo(
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${"1\r\nx\r\n".repeat(chunks)}0\r\n\r\n`,
  );
  let [came, stops] = [0, 0];
  const answer = await ask(connection, {
    answerCame() {
      assert.equal(connection.isPaused, false, "a chunk came to a paused receiver");
      came += 1;
      if (came % 100 > 0) return;
      stops += 1;
      connection.pause();
      setImmediate(() => connection.resume());
    },
  });
  assert.deepEqual([answer.outcome, came, stops], ["whole", chunks, chunks / 100]);
  assert.equal((await ask(connection)).outcome, "whole", "the connection serves the next request");
});

test("a receiver that throws loses its own answer only", async () => {
  const connection = await connectTo(sound);
  const other = await connectTo(sound);
  const thrower = () => assert.fail("a fault of the receiver");
  assert.equal((await ask(connection, { answerBegan: thrower })).outcome, "a fault of the receiver");
  assert.equal(connection.socket.destroyed, true);
  assert.deepEqual(await ask(other), { status: 200, body: "ok", outcome: "whole" });
});

for (const [what, bytes] of [
  ["that says it closes", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"],
  ["that keeps it for no time", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: timeout=1\r\n\r\nok"],
  ["that sends more than its answer", `${sound}${sound}`],
] as const) {
  test(`a connection to a replica ${what} serves no second request`, async () => {
    const connection = await connectTo(bytes);
    const closed = once(connection.socket, "close");
    assert.deepEqual(await ask(connection), { status: 200, body: "ok", outcome: "whole" });
    await closed;
  });
}

test("a head of more than 256 fields, or of more than 32 KiB, is refused", async () => {
  const begin = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n";
  assert.equal((await ask(await connectTo(`${begin}${"a:\r\n".repeat(255)}\r\n`))).outcome, "whole");
  for (const fields of ["a:\r\n".repeat(256), `a: ${"x".repeat(32 * 1024)}\r\n`]) {
    const answer = await ask(await connectTo(`${begin}${fields}\r\n`));
    assert.deepEqual([answer.status, answer.outcome === "whole"], [0, false]);
  }
});

test("an answer without a length ends with its connection, one with a length does not", async () => {
  const app = await startRawApp((socket, head) => {
    const length = head.includes("sized") ? "Content-Length: 10\r\n" : "";
    socket.end(`HTTP/1.1 200 OK\r\n${length}\r\nhalf`);
  });
  apps.push(app);
  for (const [path, outcome] of [
    ["/open", "whole"],
    ["/sized", "the connection ended in the middle of the answer"],
  ]) {
    const connection = new UpstreamConnection(false);
    connection.socket.connect(app.target);
    await once(connection.socket, "connect");
    const answer = await new Promise((resolve) =>
      connection.send(
        { ...get, path: path as string },
        {
          answerBegan() {},
          answerCame() {},
          answerEnded: () => resolve("whole"),
          answerFailed: (error) => resolve(error.message),
        },
      ),
    );
    assert.equal(answer, outcome);
  }
});
