import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { Command } from "commander";
import type { AnyInput } from "../contract/client.ts";
import { createContext, type CliContext } from "./context.ts";
import { readEnvironment } from "./environment.ts";
import { actCommand, commandGroup, listCommand, type AddCommands } from "./command-tree.ts";
import { oneNamed } from "./one-named.ts";

interface Sent extends AnyInput {
  readonly row: string;
}

/** A context whose client answers every call with the same document and records what was sent. */
function answering(document: unknown): { ctx: CliContext; sent: Sent[]; printed: () => string; noted: () => string } {
  const sent: Sent[] = [];
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const streams = { stdout, stderr, stdin: new PassThrough() } as unknown as Pick<
    CliContext["environment"],
    "stdout" | "stderr" | "stdin"
  >;
  const environment = { ...readEnvironment({ HOME: "/nonexistent", BERTH_PROJECT: "demo" }), ...streams };
  const send = async (row: { name: string }, { params, query }: AnyInput) => {
    sent.push({ row: row.name, params: params ?? {}, query: query ?? {} });
    return document;
  };
  const client = async () => ({ baseUrl: "http://127.0.0.1", send }) as never;
  const read = (stream: PassThrough) => String(stream.read() ?? "");
  const ctx = { ...createContext(environment, new AbortController().signal), client };
  return { ctx, sent, printed: () => read(stdout), noted: () => read(stderr) };
}

async function run(ctx: CliContext, words: readonly string[], add: AddCommands): Promise<void> {
  const program = new Command("berth").exitOverride();
  commandGroup({ name: "things", summary: "Things", commands: () => [add] })(program, ctx);
  await program.parseAsync(["things", ...words], { from: "user" });
}

const list = listCommand({
  row: "cron.runs",
  usage: "runs <name>",
  summary: "List runs",
  examples: [],
  items: ({ runs }) => runs,
  columns: { ID: ({ id }) => id, STATUS: ({ status }) => status },
  empty: "It has not run yet.",
});

test("a list takes its path from the arguments and the project, and says how it goes on", async () => {
  const { ctx, sent, printed, noted } = answering({ runs: [{ id: "run_1", status: "failed" }], next_cursor: "c2" });
  await run(ctx, ["runs", "nightly", "--cursor", "c1"], list);
  assert.deepEqual(sent, [{ row: "cron.runs", params: { slug: "demo", name: "nightly" }, query: { cursor: "c1" } }]);
  assert.equal(printed(), "ID     STATUS\nrun_1  failed\n");
  assert.equal(noted(), "There is more: --cursor c2\n");
});

test("an empty list says so", async () => {
  const { ctx, printed } = answering({ runs: [], next_cursor: null });
  await run(ctx, ["runs", "nightly"], list);
  assert.equal(printed(), "It has not run yet.\n");
});

test("a command that destroys is not sent before it is confirmed, and names what it found", async () => {
  const { ctx, sent, noted } = answering(undefined);
  const add = actCommand({
    row: "tokens.delete",
    usage: "revoke <token>",
    summary: "Revoke",
    examples: [],
    find: async (_client, given) => ({ id: `tok_${given}`, name: given }),
    warning: ({ thing }) => `This revokes ${thing.name}.`,
    text: (_, _paint, { thing }) => `Revoked ${thing.name}.`,
  });
  await assert.rejects(run(ctx, ["revoke", "ci"], add), /This revokes ci\. The input is not a terminal/);
  assert.deepEqual(sent, []);
  await run(ctx, ["revoke", "ci", "--yes"], add);
  assert.deepEqual(sent, [{ row: "tokens.delete", params: { id: "tok_ci" }, query: {} }]);
  assert.equal(noted(), "Revoked ci.\n");
});

test("a word that names several things or none is refused, without repeating what may be a secret", () => {
  const things = [
    { id: "1", name: "ci" },
    { id: "2", name: "ci" },
  ];
  const naming = {
    noun: "token",
    names: ({ id, name }: { id: string; name: string }) => [id, name],
    list: "berth tokens",
  };
  assert.equal(oneNamed(things, "2", naming), things[1]);
  assert.throws(() => oneNamed(things, "ci", naming), {
    code: "ambiguous",
    message: /Several tokens have the name "ci"/,
  });
  assert.throws(() => oneNamed(things, "s3cret", { ...naming, secret: true }), {
    code: "not_found",
    message: "There is no such token.",
  });
});
