import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, describe, test } from "node:test";
import { awaitAnswer, type ThreadState } from "./await-answer.ts";
import { start } from "./exec.ts";
import { identify, type ProcessIdentity } from "./processes.ts";
import { until } from "./until.ts";

describe("the answer of a process", () => {
  // Repeats its input.
  const echo = start({ file: "cat", args: [] });
  const identity = identify(echo.pid as number) as ProcessIdentity;
  after(() => void echo.kill("SIGKILL"));

  const ask = () =>
    new Promise<string>((resolve) => {
      echo.stdout.once("data", (chunk: Buffer) => resolve(String(chunk)));
      echo.stdin?.write("awake");
    });
  const never = () => new Promise<never>(() => {});

  /** A thread that waits its turn, looked at often; at look `endsAt` it answers. */
  function scheduled(look: (count: number) => ThreadState, endsAt: number) {
    const answer = Promise.withResolvers<string>();
    let looks = 0;
    const threads = () => {
      looks += 1;
      if (looks === endsAt) answer.resolve("late");
      return [look(looks)];
    };
    const answering = { processes: () => [identity], continued: () => {}, lookEveryMs: 1, threads };
    return { run: () => awaitAnswer(() => answer.promise, answering), looks: () => looks };
  }

  const waits = [
    ["is runnable and gets no processor", () => ({ id: "1", state: "R", ranMs: 5, waitedMs: 0 })],
    ["gets little of a processor", (count) => ({ id: "1", state: "R", ranMs: count, waitedMs: count * 250 })],
    ["waits for the disk", () => ({ id: "1", state: "D", ranMs: 5, waitedMs: 0 })],
  ] as const satisfies readonly (readonly [string, (count: number) => ThreadState])[];
  for (const [what, look] of waits) {
    test(`comes late and is taken while the process ${what}, up to half a minute`, async () => {
      assert.equal(await scheduled(look, 100).run(), "late");
      assert.equal(await scheduled(look, 1000).run(), undefined);
    });
  }

  const hangs = [
    ["sleeps", () => ({ id: "1", state: "S", ranMs: 5, waitedMs: 0 })],
    ["computes without end", (count) => ({ id: "1", state: "R", ranMs: count * 250, waitedMs: 0 })],
  ] as const satisfies readonly (readonly [string, (count: number) => ThreadState])[];
  for (const [what, look] of hangs) {
    test(`is given up after six looks when the process ${what}`, async () => {
      const { run, looks } = scheduled(look, 1000);
      assert.equal(await run(), undefined);
      assert.equal(looks(), 6);
    });
  }

  test("comes from a process that a signal has stopped: it is continued", async () => {
    process.kill(identity.pid, "SIGSTOP");
    const isStopped = () => (readFileSync(`/proc/${identity.pid}/stat`, "utf8").includes(") T ") ? true : undefined);
    await until(isStopped, { timeoutMs: 60_000 });
    const continued: number[] = [];
    const answering = { processes: () => [identity], continued: (pid: number) => void continued.push(pid) };
    assert.equal(await awaitAnswer(ask, { ...answering, lookEveryMs: 50 }), "awake");
    assert.deepEqual(continued, [identity.pid]);
  });

  test("of a process that says nothing is undefined, and the question is over; a refusal is thrown", async () => {
    let asked: AbortSignal | undefined;
    const answering = { processes: () => [identity], continued: () => {}, lookEveryMs: 1 };
    const silent = (signal: AbortSignal) => ((asked = signal), never());
    assert.equal(await awaitAnswer(silent, answering), undefined);
    assert.equal(asked?.aborted, true);
    await assert.rejects(
      awaitAnswer(() => Promise.reject(new Error("refused")), answering),
      /refused/,
    );
  });
});
