import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { createContext, type CliContext } from "./context.ts";
import { readEnvironment } from "./environment.ts";
import { ask, confirm } from "./prompts.ts";

/** A context whose stdin and stderr are a terminal that the test types on and reads from. */
function atTerminal(): { ctx: CliContext; type: (text: string) => void; screen: () => string } {
  const stdin = Object.assign(new PassThrough(), { isTTY: true }) as unknown as NodeJS.ReadStream;
  const stderr = Object.assign(new PassThrough(), { isTTY: true }) as unknown as NodeJS.WriteStream;
  let shown = "";
  (stderr as unknown as PassThrough).on("data", (chunk: Buffer) => {
    shown += chunk.toString();
  });
  const environment = { ...readEnvironment({ HOME: "/nonexistent", NO_COLOR: "1" }), stdin, stderr };
  return {
    ctx: createContext(environment, new AbortController().signal),
    type: (text) => void (stdin as unknown as PassThrough).write(text),
    screen: () => shown,
  };
}

test("a hidden answer never appears on the screen", async () => {
  const { ctx, type, screen } = atTerminal();
  const answer = ask(ctx, "Token: ", true);
  type("planted-token\r");
  assert.equal(await answer, "planted-token");
  assert.equal(screen(), "Token: \n");
});

test("a destructive command goes on only when exactly the name was typed", async () => {
  const right = atTerminal();
  const goesOn = confirm(right.ctx, "This stops demo.", { name: "demo", yes: undefined });
  right.type("demo\r");
  await goesOn;
  assert.match(right.screen(), /This stops demo\.\nType demo to go on: /);
  const wrong = atTerminal();
  const stops = confirm(wrong.ctx, "This stops demo.", { name: "demo", yes: undefined });
  wrong.type("yes\r");
  await assert.rejects(stops, { code: "not_confirmed", exitCode: 1 });
});

test("Ctrl-C at a question ends the CLI as interrupted", async () => {
  const { ctx, type } = atTerminal();
  const answer = ask(ctx, "Token: ", true);
  type("\u0003");
  await assert.rejects(answer, { code: "interrupted", exitCode: 130 });
});
