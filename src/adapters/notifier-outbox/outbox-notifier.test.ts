import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { silentLog, type LogFields } from "../../kit/log.ts";
import { notifierSuite, shortMessage as message } from "../../ports/notifier.suite.ts";
import { createOutboxNotifier } from "./outbox-notifier.ts";

const never = new AbortController().signal;

async function folder(): Promise<string> {
  return mkdtemp(join(tmpdir(), "berth-outbox-"));
}

notifierSuite(async () => {
  const parent = await folder();
  const dir = join(parent, "outbox");
  return {
    notifier: createOutboxNotifier({ dir, log: silentLog }),
    async received() {
      return Promise.all((await readdir(dir)).sort().map((name) => readFile(join(dir, name), "utf8")));
    },
    async breakDown() {
      await rm(dir, { recursive: true });
      await writeFile(dir, "not a folder");
    },
    close: () => rm(parent, { recursive: true }),
  };
});

test("files and folder are for their owner's eyes only, and old files go", async () => {
  const parent = await folder();
  const dir = join(parent, "outbox");
  const notifier = createOutboxNotifier({ dir, log: silentLog });
  await notifier.deliver(message, never);
  const [name = ""] = await readdir(dir);
  assert.equal(name, "20260102T030405Z-alert-ntf_9.txt");
  assert.equal((await stat(join(dir, name))).mode & 0o777, 0o600);
  assert.equal((await stat(dir)).mode & 0o777, 0o700);
  const longAgo = new Date(Date.now() - 8 * 86_400_000);
  await utimes(join(dir, name), longAgo, longAgo);
  await writeFile(join(dir, "notes"), "mine");
  await notifier.deliver({ ...message, id: "ntf_10" }, never);
  assert.deepEqual((await readdir(dir)).sort(), ["20260102T030405Z-alert-ntf_10.txt", "notes"]);
  await rm(parent, { recursive: true });
});

test("the operator's log says that there is something, and where", async () => {
  const parent = await folder();
  const lines: [LogFields, string][] = [];
  const log = { ...silentLog, info: (fields: LogFields, text: string) => void lines.push([fields, text]) };
  await createOutboxNotifier({ dir: parent, log }).deliver({ ...message, url: "http://berth.test/decide/x" }, never);
  assert.deepEqual(lines, [[{ open: "http://berth.test/decide/x" }, "s"]]);
  await rm(parent, { recursive: true });
});
