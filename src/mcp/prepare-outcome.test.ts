import assert from "node:assert/strict";
import { test } from "node:test";
import { route } from "../contract/routes.ts";
import { prepareOutcome } from "./prepare-outcome.ts";
import type { Session } from "./session.ts";

test("a call that makes a backup says how far it is until the backup has ended", async () => {
  const seen = [
    { status: "running", operation: { phase: "dumping", bytes_done: 5 } },
    { status: "completed", operation: null },
  ];
  const said: string[] = [];
  const session = {
    client: { call: async () => (seen.length > 1 ? seen.shift() : seen[0]) },
    say: (text: string) => void said.push(text),
    signal: new AbortController().signal,
  } as unknown as Session;
  const outcome = await prepareOutcome(session, route("backups.create"), { slug: "shop" });
  assert.deepEqual(await outcome({ id: "bak_1" }), { status: "completed", operation: null });
  assert.deepEqual(said, ["dumping, 5 bytes"]);
});
