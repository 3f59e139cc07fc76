import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ResponseReader, type ResponseHead } from "./response-reader.ts";

/** Reads a whole connection's bytes, in pieces of `pieceBytes`, as the answer to one request. */
function read(bytes: string, { method = "GET", pieceBytes = bytes.length, closes = false } = {}) {
  const seen = { status: 0, headers: [] as string[], body: "", trailers: [] as string[], ended: false, broken: "" };
  const reader = new ResponseReader({
    information: () => {},
    head: (head: ResponseHead) => void Object.assign(seen, { status: head.status, headers: head.headers }),
    body: (chunk) => void (seen.body += chunk.toString("latin1")),
    end: (trailers) => void Object.assign(seen, { trailers, ended: true }),
    broken: (reason) => void (seen.broken = reason),
  });
  reader.begin(method);
  for (let at = 0; at < bytes.length; at += pieceBytes)
    reader.push(Buffer.from(bytes.slice(at, at + pieceBytes), "latin1"));
  if (closes) reader.close();
  return { ...seen, keepAlive: reader.keepAlive, hintMs: reader.keepAliveHintMs };
}

const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

describe("the response reader", () => {
  test("reads the same from whole and from single bytes", () => {
    const answers = [
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\n\r\nhello",
      `${chunked}5\r\nhello\r\n6;ext="1"\r\n world\r\n0\r\nX-Sum: 7\r\n\r\n`,
      "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    ];
    for (const answer of answers) {
      const whole = read(answer);
      assert.ok(whole.ended && whole.broken === "" && whole.keepAlive);
      assert.deepEqual(read(answer, { pieceBytes: 1 }), whole);
    }
  });

  test("takes hop-by-hop fields out and reads what they say", () => {
    const fields =
      "Connection: keep-alive, X-Hop\r\nKeep-Alive: timeout=5, max=9\r\nX-Hop: 1\r\nX-End: 2\r\nContent-Length: 0\r\n";
    const { headers, hintMs } = read(`HTTP/1.1 200 OK\r\n${fields}\r\n`);
    assert.deepEqual(headers, ["X-End", "2", "Content-Length", "0"]);
    assert.equal(hintMs, 5000);
  });

  test("a length beside chunks does not reach the client", () => {
    const answer = read(
      "HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
    );
    assert.deepEqual([answer.body, answer.headers, answer.ended], ["a", [], true]);
  });

  test("without a length the body ends with the connection, which is not used again", () => {
    const answer = read("HTTP/1.0 200 OK\r\n\r\nall", { closes: true });
    assert.deepEqual([answer.body, answer.ended, answer.keepAlive], ["all", true, false]);
  });

  test("HEAD and 304 have no body whatever their length says", () => {
    assert.ok(read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", { method: "HEAD" }).ended);
    assert.ok(read("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n").ended);
  });

  const unsound = {
    "no status line": "hello\r\n\r\n",
    "a status of two digits": "HTTP/1.1 20 OK\r\n\r\n",
    "a field without a colon": "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n",
    "a folded field": "HTTP/1.1 200 OK\r\nA: 1\r\n b: 2\r\n\r\n",
    "a space before a colon": "HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\na",
    "a trailer that Node would not send": `${chunked}0\r\nX Y: 1\r\n\r\n`,
    "a lone line feed": "HTTP/1.1 200 OK\r\nA: 1\nB: 2\r\n\r\n",
    "the same length twice": "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
    "two lengths": "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a negative length": "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "an unknown coding": "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    "a chunk size that is none": `${chunked}zz\r\n`,
    "a chunk longer than its size": `${chunked}1\r\nab\r\n`,
    "a head without an end": `HTTP/1.1 200 OK\r\nA: ${"x".repeat(70_000)}`,
    "bytes behind its end": "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
  };
  for (const [what, bytes] of Object.entries(unsound)) {
    test(`an answer with ${what} is broken`, () => assert.notEqual(read(bytes).broken, ""));
  }

  test("an answer that stops in its middle is broken", () => {
    for (const bytes of ["HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", `${chunked}5\r\nabc`]) {
      assert.notEqual(read(bytes, { closes: true }).broken, "");
    }
  });
});
